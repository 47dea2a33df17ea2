package conga

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fluid is a fabric of links and flows that are always as fast as they may be:
// TCP as §2.4 of the paper reasons about it. In a step, which is a round trip,
// some flows begin a flowlet, links carry what is offered up to their rate, and
// receivers report.
type fluid struct {
	rates []float64 // of links, Gbit/s
	dres  []DRE
	flows []flow
	now   time.Duration
	rng   *rand.Rand
}

type flow struct {
	table  *Table
	paths  []int
	links  [][]int // of each path, the sender's own first
	demand float64 // Gbit/s
	path   int
}

const roundTrip = 50 * time.Microsecond

func newFluid(seed uint64, rates ...float64) *fluid {
	f := &fluid{rates: rates, rng: rand.New(rand.NewPCG(seed, 0))}
	for _, r := range rates {
		f.dres = append(f.dres, NewDRE(160*time.Microsecond, r*1e9))
	}
	return f
}

// leaf adds a leaf that sends so much in flows of 1 Gbit/s, by paths of these
// links.
func (f *fluid) leaf(t *testing.T, seed uint64, demand int, links ...[]int) {
	table := newTable(t, Config{RateBits: f.rates[links[0][0]] * 1e9, Seed: seed})
	var paths []int
	for p := range links {
		paths = append(paths, p)
	}
	for i := range demand {
		f.flows = append(f.flows, flow{table, paths, links, 1, i % len(paths)})
	}
}

// step returns the throughput of each flow, in Gbit/s. A choice of nil is ECMP:
// flows stay where they are.
func (f *fluid) step(aware, reports bool) []float64 {
	f.now += roundTrip
	offered := make([]float64, len(f.rates))
	for i := range f.flows {
		w := &f.flows[i]
		if aware && f.rng.IntN(10) == 0 {
			w.path = w.table.Choose(theRack, w.paths, asTag, w.path, f.now)
		}
		for _, l := range w.links[w.path] {
			offered[l] += w.demand
		}
	}
	through := make([]float64, len(f.flows))
	for i := range f.flows {
		w := &f.flows[i]
		through[i] = w.demand
		for _, l := range w.links[w.path] {
			if offered[l] > f.rates[l] {
				through[i] = min(through[i], w.demand*f.rates[l]/offered[l])
			}
		}
	}
	// Traffic of a step is spread over it, as far as the DREs can tell.
	for part := range 5 {
		at := f.now + roundTrip*time.Duration(part)/5
		for i := range f.flows {
			w := &f.flows[i]
			bytes := int(through[i] * 1e9 / 8 * roundTrip.Seconds() / 5)
			w.table.Sent(uint8(w.path), bytes, at)
			for _, l := range w.links[w.path] {
				f.dres[l].Add(bytes, at)
			}
		}
	}
	for i := range f.flows {
		w := &f.flows[i]
		if !reports {
			continue
		}
		ce := uint8(0)
		for _, l := range w.links[w.path] {
			ce = max(ce, f.dres[l].Metric(f.now+roundTrip*4/5))
		}
		w.table.Feedback(theRack, uint8(w.path), ce, f.now+roundTrip)
	}
	return through
}

// run returns the mean throughput over the latter half of the steps, by the
// number of the flow's table and path.
func (f *fluid) run(steps int, aware, reports bool) map[*Table][2]float64 {
	mean := map[*Table][2]float64{}
	for i := range steps {
		through := f.step(aware, reports)
		if i < steps/2 {
			continue
		}
		for j, x := range through {
			w := &f.flows[j]
			m := mean[w.table]
			m[w.path] += x / float64(steps-steps/2)
			mean[w.table] = m
		}
	}
	return mean
}

// CONGA Fig. 2: 100 Gbit/s from L0 to L1, over S0 by two links of 80 Gbit/s, and
// over S1, whose link to L1 has 40. ECMP carries 90, who looks at local links
// only 80, and CONGA everything, two thirds of it over S0.
func TestFluid_figure2(t *testing.T) {
	for seed := range uint64(3) {
		run := func(aware, reports bool) (upper, lower float64) {
			f := newFluid(seed, 80, 80, 80, 40)
			f.leaf(t, seed, 100, []int{0, 2}, []int{1, 3})
			m := f.run(800, aware, reports)[f.flows[0].table]
			return m[0], m[1]
		}
		upper, lower := run(false, false)
		if sum := upper + lower; sum < 89.9 || sum > 90.1 {
			t.Errorf("seed %d: ECMP carries %.1f Gbit/s, the paper says 90", seed, sum)
		}
		upper, lower = run(true, false)
		t.Logf("seed %d: local only: %.1f + %.1f", seed, upper, lower)
		if sum := upper + lower; sum < 74 || sum > 84 {
			t.Errorf("seed %d: looking at local links only carries %.1f Gbit/s, the paper says 80", seed, sum)
		}
		upper, lower = run(true, true)
		t.Logf("seed %d: CONGA: %.1f + %.1f", seed, upper, lower)
		if sum := upper + lower; sum < 98 || upper < 62 || upper > 73 {
			t.Errorf("seed %d: CONGA carries %.1f + %.1f Gbit/s, the paper says 66.6 + 33.3", seed, upper, lower)
		}
	}
}

// CONGA Fig. 3: all links have 40 Gbit/s, and L0 reaches S0 only. What L1 is to
// send to L2 over S0 depends on what L0 does.
func TestFluid_figure3(t *testing.T) {
	for seed := range uint64(3) {
		for _, c := range []struct {
			l0, l1       int // demand
			low, high    float64
			paperThrough float64
		}{
			{0, 80, 34, 41, 40}, // half each way
			{40, 40, 0, 8, 0},   // all over S1
		} {
			// L1-S0, L1-S1, S0-L2, S1-L2, L0-S0
			f := newFluid(seed, 40, 40, 40, 40, 40)
			f.leaf(t, seed, c.l1, []int{0, 2}, []int{1, 3})
			l1 := f.flows[0].table
			if c.l0 > 0 {
				f.leaf(t, seed+100, c.l0, []int{4, 2})
			}
			m := f.run(800, true, true)
			var all float64
			for _, x := range m {
				all += x[0] + x[1]
			}
			t.Logf("seed %d, L0 sends %d: L1 sends %.1f over S0 and %.1f over S1; all %.1f", seed, c.l0, m[l1][0], m[l1][1], all)
			if x := m[l1][0]; x < c.low || x > c.high {
				t.Errorf("seed %d, L0 sends %d: L1 sends %.1f Gbit/s over S0, the paper says %v", seed, c.l0, x, c.paperThrough)
			}
			if all < 72 {
				t.Errorf("seed %d, L0 sends %d: all carry %.1f Gbit/s of 80", seed, c.l0, all)
			}
		}
	}
}
