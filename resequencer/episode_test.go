package resequencer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weft/flowcell"
)

// episode is a flow of which a path is dead and nobody knows: window after
// window has holes. Its sender waits until it has heard of all of them, sends
// them again, of which as many are lost again, and then the next window.
type episode struct {
	paths  int
	window int           // segments
	calm   int           // windows before the path dies
	slow   time.Duration // by which path 0 is slower until then
	jitter time.Duration // by which it is slower from then on
	dead   int           // windows
}

// run returns how long the flow stood still for holes that were given up.
func (e episode) run(push func(flowcell.Packet, time.Duration), next func() (time.Duration, bool), expire func(time.Duration)) {
	now, sent, seq := time.Duration(0), 0, 0
	settle := func(until time.Duration) {
		for at, ok := next(); ok && at <= until; at, ok = next() {
			expire(at)
			now = at
		}
		now = max(now, until)
	}
	put := func(n int) { // counted by the sender, as per-packet policies do
		s := data(n)
		s.ID = uint16(sent)
		push(s, now)
	}
	for w := range e.calm + e.dead {
		var late, again []int
		for range e.window {
			path := sent % e.paths
			switch {
			case path == e.paths-1 && w >= e.calm:
				again = append(again, seq)
			case path == 0:
				late = append(late, seq)
			default:
				put(seq)
			}
			sent, seq = sent+1, seq+1
		}
		skew := e.slow
		if w >= e.calm {
			skew = e.jitter
		}
		if len(late) > 0 {
			settle(now + skew)
			held := sent
			for _, n := range late {
				sent = held - (seq - n) // its own number
				put(n)
			}
			sent = held
		}
		for at, ok := next(); ok; at, ok = next() {
			settle(at)
		}
		for len(again) > 0 {
			now += 40 * us
			var lost []int
			for _, n := range again {
				if sent%e.paths == e.paths-1 {
					lost = append(lost, n)
				} else {
					put(n)
				}
				sent++
			}
			again = lost
		}
		now += 40 * us
	}
}

// buffer runs e through a Buffer, and compares with the oracle on the way.
func (e episode) buffer(t *testing.T, c Config) Stats {
	r := newTrial(t, c)
	e.run(func(s flowcell.Packet, now time.Duration) { r.pass(now - r.now); r.push(s) },
		r.b.NextDeadline,
		func(at time.Duration) { r.pass(at - r.now) })
	s := r.b.Stats()
	r.end()
	return s
}

// patient runs e through an oracle that waits for every hole in full.
func (e episode) patient(c Config) Stats {
	o := oracle{c: c.withDefaults(), patient: true}
	n := 0
	e.run(func(s flowcell.Packet, now time.Duration) { o.push(&s, n, now, nil); n++ },
		func() (time.Duration, bool) {
			if r, _ := o.nextDue(); r != nil {
				return r.at, true
			}
			return 0, false
		},
		func(at time.Duration) { o.expire(at) })
	return o.Stats()
}

// An episode adds a hold or two to a flow, not one to every loss or window.
func TestExpire_anEpisodeCostsAboutOneHold(t *testing.T) {
	for _, c := range []struct {
		name string
		calm int
		slow time.Duration
	}{
		{"new flow", 0, 0},
		{"paths were alike", 3, 0},
		{"a path was slow", 40, 4 * ms},
	} {
		for _, paths := range []int{2, 4, 9, 16} {
			for _, jitter := range []time.Duration{0, 5 * us} {
				t.Run(fmt.Sprintf("%s, %d paths, jitter %v", c.name, paths, jitter), func(t *testing.T) {
					e := episode{paths: paths, window: 40, calm: c.calm, slow: c.slow, jitter: jitter, dead: 100}
					for _, d := range []Discipline{Sequence, Presto} {
						config := Config{Discipline: d}.withDefaults()
						s, before := e.buffer(t, config), e.patient(config)
						t.Logf("%v: held for %v, %d holes; every hole in full: %v, %d", d, s.TimeoutsWait, s.Timeouts, before.TimeoutsWait, before.Timeouts)
						// Besides, the least hold, once a window.
						if most := config.Hold*8/3 + time.Duration(e.dead)*config.MinHold; s.TimeoutsWait > most || s.Timeouts < 100 {
							t.Errorf("%v: held for %v, want at most %v; %+v", d, s.TimeoutsWait, most, s)
						}
						if s.TimeoutsWait > before.TimeoutsWait {
							t.Errorf("%v: held for %v, before for %v", d, s.TimeoutsWait, before.TimeoutsWait)
						}
						if s.TimeoutsLate > 0 {
							t.Errorf("%v: %+v", d, s)
						}
					}
				})
			}
		}
	}
}

// What comes after its hole was given up shows that there is reordering, and is
// waited for again.
func TestExpire_anEpisodeEndsWithALateOriginal(t *testing.T) {
	numbered := func(n int) flowcell.Packet { s := data(n); s.ID = uint16(n); return s }
	_, s := script(t, Config{Hold: 8 * ms, MinHold: ms},
		push(0, numbered(0), "a"),
		push(0, numbered(2), ""), expire(8*ms, "b"), // 1: in vain
		push(8*ms, numbered(4), ""), expire(10*ms, "c"), // 3: in vain, after a quarter
		push(10*ms, numbered(6), ""), expire(11*ms, "d"), // 5: the same
		push(13*ms, numbered(5), "e"), // an original, after 3 ms
		push(13*ms, numbered(8), ""), expire(20*ms, ""),
		push(20*ms, numbered(7), "gf")) // twice three, rounded up
	if s.TimeoutsLate != 1 || s.Timeouts != 3 || s.Filled != 1 {
		t.Errorf("%+v", s)
	}
}

// Losses now and then do not shorten the hold of a flow whose paths differ: no
// original comes too late that did not before.
func TestExpire_lossesDoNotShortenWhatReorderingNeeds(t *testing.T) {
	var given uint64
	for seed := range uint64(fewer(20)) {
		for _, id := range []string{"counted", "numbered", "labelled"} {
			x := fabric{seed: seed, segments: 4000, calm: 50, paths: skewed(4, 500*us), cell: 1, id: id, loss: 0.005, again: 2 * ms}
			if id != "counted" {
				x.cell = 20
			}
			list := x.send()
			_, s := receive(t, Config{}, list)
			_, before := receivePatiently(Config{}, list)
			given += s.Timeouts
			if s.TimeoutsLate > before.TimeoutsLate {
				t.Errorf("seed %d, %s: %d originals too late, %d if every hole is waited for in full", seed, id, s.TimeoutsLate, before.TimeoutsLate)
			}
		}
	}
	if given < uint64(fewer(100)) {
		t.Errorf("only %d holes were given up", given)
	}
}

// receivePatiently is receive by an oracle that waits for every hole in full.
func receivePatiently(c Config, list []arrival) ([]time.Duration, Stats) {
	o := oracle{c: c.withDefaults(), patient: true}
	delivered := make([]time.Duration, len(list))
	pass := func(until time.Duration) {
		for r, _ := o.nextDue(); r != nil && r.at <= until; r, _ = o.nextDue() {
			at := r.at
			for _, n := range o.expire(at) {
				delivered[n] = at
			}
		}
	}
	for i, a := range list {
		pass(a.at)
		for _, n := range o.push(&a.s, i, a.at, nil) {
			delivered[n] = a.at
		}
	}
	pass(time.Hour)
	return delivered, o.Stats()
}

// Whatever arrives, in whatever order, nothing waits longer than if every hole
// were waited for in full.
func TestExpire_neverWaitsLongerThanInFull(t *testing.T) {
	earlier := 0
	for seed := range uint64(fewer(200)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		x := fabric{
			seed:     seed,
			segments: 600,
			calm:     rng.IntN(300),
			again:    time.Duration(1+rng.IntN(30)) * 100 * us,
			paths:    make([]time.Duration, 1+rng.IntN(8)),
			jitter:   time.Duration(rng.IntN(3)) * 40 * us,
			cell:     1 + rng.IntN(20),
			id:       []string{"numbered", "labelled", "counted", "zero", "random"}[rng.IntN(5)],
			loss:     []float64{0, 0.002, 0.02, 0.25}[rng.IntN(4)],
		}
		for i := range x.paths {
			x.paths[i] = time.Duration(rng.IntN(500)) * us
		}
		list := x.send()
		for _, d := range []Discipline{Sequence, Presto} {
			c := Config{Discipline: d, MinHold: 50 * us, Hold: ms}
			got, _ := receive(t, c, list)
			before, _ := receivePatiently(c, list)
			for n := range got {
				if got[n] > before[n] {
					t.Fatalf("seed %d, %v: segment %d, which arrives at %v, waits until %v, before until %v", seed, d, n, list[n].at, got[n], before[n])
				}
				if got[n] < before[n] {
					earlier++
				}
			}
		}
	}
	if earlier == 0 {
		t.Error("nothing was delivered earlier: the streams leave the rule untested")
	}
}
