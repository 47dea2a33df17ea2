package conga

import (
	"math/rand/v2"
	"testing"
	"time"
)

// oracle is a Table without bounds, slow and clear.
type oracle struct {
	age      time.Duration
	sent     [Tags]DRE
	reports  map[uint32]map[uint8]heard // Congestion-To
	received map[uint32]map[uint8]heard // Congestion-From, since their last report
	reported map[uint32]map[uint8]uint8
	next     map[uint32]uint8
	refused  uint64
}

type heard struct {
	metric uint8
	at     time.Duration
}

func newOracle(c Config) *oracle {
	o := &oracle{
		age:     c.Age,
		reports: map[uint32]map[uint8]heard{}, received: map[uint32]map[uint8]heard{},
		reported: map[uint32]map[uint8]uint8{}, next: map[uint32]uint8{},
	}
	for i := range o.sent {
		o.sent[i] = NewDRE(c.Tau, c.RateBits)
	}
	return o
}

func (o *oracle) metric(dst uint32, tag uint8, now time.Duration) uint8 {
	remote := 0
	if h, ok := o.reports[dst][tag]; ok {
		remote = int(h.metric)
		for limit := h.at + o.age; now > h.at+o.age && now >= limit && remote > 0; limit += o.age / 8 {
			remote--
		}
	}
	return max(o.sent[tag].Metric(now), uint8(remote))
}

// best lists the paths among which chance decides.
func (o *oracle) best(dst uint32, paths []int, tag func(int) uint8, last int, now time.Duration) (best []int) {
	if o.reports[dst] == nil {
		o.reports[dst] = map[uint8]heard{}
	}
	least := uint8(255)
	for _, p := range paths {
		least = min(least, o.metric(dst, tag(p), now))
	}
	for _, p := range paths {
		if o.metric(dst, tag(p), now) == least {
			best = append(best, p)
		}
	}
	for _, p := range best {
		if p == last {
			return []int{last}
		}
	}
	return best
}

func (o *oracle) nextFeedback(dst uint32, now time.Duration) (tag, metric uint8, ok bool) {
	for _, mustHaveChanged := range []bool{true, false} {
		for i := range uint8(Tags) {
			tag := (o.next[dst] + i) % Tags
			h, news := o.received[dst][tag]
			if !news || now-h.at > o.age {
				continue
			}
			if old, told := o.reported[dst][tag]; mustHaveChanged && told && old == h.metric {
				continue
			}
			delete(o.received[dst], tag)
			o.reported[dst][tag] = h.metric
			o.next[dst] = (tag + 1) % Tags
			return tag, h.metric, true
		}
	}
	return 0, 0, false
}

func TestTable_isTheOracle(t *testing.T) {
	for seed := range uint64(4) {
		c, _ := Config{Tau: 100 * time.Microsecond, Age: 1600 * time.Microsecond, RateBits: 1e9, Seed: seed}.WithDefaults()
		table, slow := newTable(t, c), newOracle(c)
		chance := rand.NewPCG(seed, 0x636f6e6761) // the Table's own
		rng := rand.New(rand.NewPCG(seed, 1))
		now := time.Duration(0)
		last := -1
		draws, reports := 0, 0
		for i := range 30_000 {
			now += time.Duration(rng.ExpFloat64() * float64(20*time.Microsecond))
			dst, tag, metric := rng.Uint32N(3), uint8(rng.UintN(Tags)), uint8(rng.UintN(MaxMetric+1))
			switch rng.IntN(6) {
			case 0:
				first, stride := rng.IntN(3), 1+rng.IntN(2)
				var paths []int
				for p := first; p < 40 && len(paths) < 1+rng.IntN(40); p += stride {
					paths = append(paths, p)
				}
				tagOf := func(p int) uint8 { return Tag(p, 40, p/4) }
				best := slow.best(dst, paths, tagOf, last, now)
				want := best[0]
				if len(best) > 1 {
					want = best[chance.Uint64()%uint64(len(best))]
					draws++
				} else if want != last {
					chance.Uint64()
				}
				if got := table.Choose(dst, paths, tagOf, last, now); got != want {
					t.Fatalf("seed %d, step %d: path %d of %v, last %d, want %d", seed, i, got, paths, last, want)
				}
				last = want
			case 1:
				bytes := rng.IntN(6000)
				table.Sent(tag, bytes, now)
				slow.sent[tag].Add(bytes, now)
			case 2:
				table.Feedback(dst, tag, metric, now)
				if slow.reports[dst] == nil {
					slow.refused++
				} else {
					slow.reports[dst][tag] = heard{metric, now}
				}
			case 3, 4:
				table.Received(dst, tag, metric/3, now)
				if slow.received[dst] == nil {
					slow.received[dst], slow.reported[dst] = map[uint8]heard{}, map[uint8]uint8{}
				}
				slow.received[dst][tag] = heard{metric / 3, now}
			case 5:
				got, gotMetric, gotOK := table.NextFeedback(dst, now)
				want, wantMetric, wantOK := slow.nextFeedback(dst, now)
				if got != want || gotMetric != wantMetric || gotOK != wantOK {
					t.Fatalf("seed %d, step %d: feedback %d %d %v, want %d %d %v", seed, i, got, gotMetric, gotOK, want, wantMetric, wantOK)
				}
				if gotOK {
					reports++
				}
			}
		}
		if draws < 1000 || reports < 1000 || table.Stats().Refused != slow.refused {
			t.Errorf("seed %d: %d draws, %d reports, %d refused of %d", seed, draws, reports, table.Stats().Refused, slow.refused)
		}
	}
}
