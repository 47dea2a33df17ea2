package luopan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/internal/timerq"
)

// fluid is a rack's paths to another as bins that drain: hosts put in flowcells at
// random times, each host by its own Table, whose probes take half a round trip to
// see a path and half to come back.
type fluid struct {
	rates []float64 // bytes per nanosecond
	full  []float64 // bytes in the bin at time at
	at    []time.Duration
}

func (f *fluid) backlog(path int, now time.Duration) float64 {
	f.full[path] = max(0, f.full[path]-f.rates[path]*float64(now-f.at[path]))
	f.at[path] = now
	return f.full[path]
}

// herding says who chooses how in a run.
type herding struct {
	hosts  int
	load   float64   // of all paths together
	rates  []float64 // 1 is 10 Gbit/s
	config Config
	random bool // no table
	blind  bool // the table is not told what was sent
}

// waits runs for a while and returns what flowcells find before them, in
// microseconds, in ascending order.
func (h herding) waits(seed uint64, lasting time.Duration) []float64 {
	const cell = 64 << 10
	const halfway = 20 * time.Microsecond
	rng := rand.New(rand.NewPCG(seed, 1))
	n := len(h.rates)
	f := &fluid{full: make([]float64, n), at: make([]time.Duration, n)}
	total := 0.0
	paths := make([]int, n)
	for i, r := range h.rates {
		f.rates = append(f.rates, 1.25*r)
		total += 1.25 * r
		paths[i] = i
	}
	every := cell / (total * h.load) * float64(h.hosts)
	var todo timerq.Queue[func()]
	var waits []float64
	now := time.Duration(0)
	for host := range h.hosts {
		h.config.Seed = seed<<8 | uint64(host)
		t, err := New(h.config)
		if err != nil {
			panic(err)
		}
		var tick func()
		tick = func() {
			t.Probes(now, func(p Probe) {
				todo.Add(now+halfway, func() {
					q := min(math.Ceil(f.backlog(p.Path, now)/1500), maxQueue)
					wait := time.Duration(f.full[p.Path] / f.rates[p.Path])
					todo.Add(now+wait+halfway, func() {
						t.Answer(Answer{Token: p.Token, Path: p.Path, Queue: uint8(q), Meters: 1, Received: now - halfway}, p.Host, now)
					})
				})
			})
			todo.Add(max(min(t.Next(), now+10*time.Microsecond), now+time.Microsecond), tick)
		}
		if !h.random {
			tick()
		}
		var send func()
		send = func() {
			path := rng.IntN(n)
			if !h.random {
				path, _ = t.Choose(1, 1, paths, now)
				if !h.blind {
					t.Sent(1, path, cell)
				}
			}
			waits = append(waits, f.backlog(path, now)/f.rates[path]/1e3)
			f.full[path] += cell
			todo.Add(now+time.Duration(rng.ExpFloat64()*every), send)
		}
		todo.Add(time.Duration(rng.ExpFloat64()*every), send)
	}
	for now < lasting {
		now = todo.Next()
		todo.Pop()()
	}
	slices.Sort(waits)
	return waits
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}

// Samples help only if the best one does not attract too much (Luopan, Appendix): the
// bytes that this host has sent since, and its share, must count. The test compares this
// with random paths and with the best sample alone. The fabric has equal paths, or one
// path with a quarter of the others' rate, which random paths overload.
func TestHerd(t *testing.T) {
	even := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	odd := func(n int) []float64 { r := even(n); r[0] = .25; return r }
	for _, c := range []struct {
		name   string
		hosts  int
		load   float64
		rates  []float64
		expiry time.Duration
		random float64 // the mean wait is at most that of random paths times this
		blind  float64 // and that of the best sample alone times this
	}{
		{"16 paths, 32 hosts", 32, .8, even(16), 40 * us, .8, 1},
		{"16 paths, 8 hosts", 8, .8, even(16), 40 * us, .8, .6},
		{"16 paths, 2 hosts", 2, .8, even(16), 40 * us, 1, .3},
		{"16 paths, 8 hosts, adaptive", 8, .8, even(16), 0, .9, .3},
		{"16 paths, 8 hosts, little load, adaptive", 8, .4, even(16), 0, 1.3, .5},
		{"4 paths, one slow, 8 hosts", 8, .7, odd(4), 40 * us, .1, 1.1},
		{"4 paths, one slow, 8 hosts, adaptive", 8, .7, odd(4), 0, .1, 1},
		{"4 paths, one slow, 2 hosts, adaptive", 2, .7, odd(4), 0, .1, .6},
		{"16 paths, one slow, 8 hosts", 8, .8, odd(16), 40 * us, .3, 2},
	} {
		h := herding{hosts: c.hosts, load: c.load, rates: c.rates, config: Config{Expiry: c.expiry, Budget: 1e6}}
		const lasting = 30 * time.Millisecond
		ours := mean(h.waits(1, lasting))
		h.blind = true
		blind := mean(h.waits(1, lasting))
		h.random = true
		random := mean(h.waits(1, lasting))
		t.Logf("%-42s random %5.0f µs, best sample alone %5.0f, ours %5.0f", c.name, random, blind, ours)
		if ours > c.random*random || ours > c.blind*blind {
			t.Errorf("%s: %.0f µs on average; random paths %.0f, the best sample alone %.0f", c.name, ours, random, blind)
		}
	}
}
