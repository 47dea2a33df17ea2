package resequencer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

// arrival is a segment that comes out of a fabric.
type arrival struct {
	at time.Duration
	s  flowcell.Packet
}

// fabric says what happens to the segments of one sender.
type fabric struct {
	seed     uint64
	segments int
	calm     int             // so many segments before the paths differ
	paths    []time.Duration // delay of each
	jitter   time.Duration   // at most; what is behind on a path stays behind
	cell     int             // segments in a flowcell, or sprayed per packet if 1
	id       string          // what the sender writes into the IPv4 ID: "numbered", "labelled" as in IPv6, "counted", "zero", "random"
	loss     float64         // each is sent again after some time
	again    time.Duration   // a millisecond if 0
	copies   float64
}

// send returns the segments of a flow in the order of their arrival: a SYN, and
// after a millisecond data, 10 µs apart, round robin over the paths.
func (x fabric) send() []arrival {
	rng := rand.New(rand.NewPCG(x.seed, 1))
	const start = 1<<32 - 20000
	syn := flowcell.Packet{Flow: tuple(1), Seq: start - 1, Length: 40, Flags: flowcell.FlagSYN}
	list := []arrival{{0, syn}}
	last := make([]time.Duration, len(x.paths))
	sent := 0
	put := func(n int, now time.Duration) {
		path := sent / x.cell % len(x.paths)
		s := flowcell.Packet{Flow: tuple(1), Seq: start + 100*uint32(n), Payload: 100, Length: 140, Flags: flowcell.FlagACK}
		switch x.id {
		case "numbered":
			s.ID = uint16(flowcell.MakeNumber(uint16(sent/x.cell), uint8(sent%x.cell)))
		case "labelled":
			s.ID = uint16(flowcell.MakeNumber(uint16(sent/x.cell), 0))
		case "counted":
			s.ID = uint16(sent + int(x.seed)*7)
		case "random":
			s.ID = uint16(rng.Uint32())
		}
		sent++
		at := now
		if n >= x.calm {
			at += x.paths[path]
		}
		if x.jitter > 0 && n >= x.calm {
			at += time.Duration(rng.Int64N(int64(x.jitter)))
		}
		at = max(at, last[path])
		last[path] = at
		list = append(list, arrival{at, s})
		if rng.Float64() < x.copies {
			list = append(list, arrival{at, s})
		}
	}
	var again []arrival // when, and which in Seq
	if x.again == 0 {
		x.again = ms
	}
	now := ms
	for n := 0; n < x.segments || len(again) > 0; now += 10 * time.Microsecond {
		if len(again) > 0 && (again[0].at <= now || n == x.segments) {
			put(int(again[0].s.Seq), now)
			again = again[1:]
			continue
		}
		if rng.Float64() < x.loss {
			again = append(again, arrival{now + x.again, flowcell.Packet{Seq: uint32(n)}})
			sent++
		} else {
			put(n, now)
		}
		n++
	}
	slices.SortStableFunc(list, func(a, b arrival) int { return int(a.at - b.at) })
	return list
}

// receive runs arrivals through a Buffer and the oracle, and returns when each
// was delivered.
func receive(t *testing.T, c Config, list []arrival) ([]time.Duration, Stats) {
	t.Helper()
	r := newTrial(t, c)
	delivered := make([]time.Duration, len(list))
	known := 0
	note := func() {
		for _, n := range r.order[known:] {
			delivered[n] = r.now
		}
		known = len(r.order)
	}
	pass := func(until time.Duration) {
		for at, ok := r.b.NextDeadline(); ok && at <= until; at, ok = r.b.NextDeadline() {
			r.pass(at - r.now)
			note()
		}
		r.pass(until - r.now)
	}
	for _, a := range list {
		pass(a.at)
		r.push(a.s)
		note()
	}
	pass(r.now + time.Second)
	s := r.b.Stats()
	r.end()
	return delivered, s
}

const us = time.Microsecond

func skewed(paths int, skew time.Duration) []time.Duration {
	p := make([]time.Duration, paths)
	p[paths-1] = skew
	return p
}

// Whatever the sender writes into the IPv4 ID, nothing waits longer than by the
// sequence alone, and without loss order is kept.
func TestPush_numbersAreAHint(t *testing.T) {
	for seed := range uint64(8) {
		for _, id := range []string{"numbered", "labelled", "counted", "zero", "random"} {
			for _, loss := range []float64{0, 0.02} {
				for _, cell := range []int{1, 20, 62} {
					if cell == 1 && (id == "numbered" || id == "labelled") {
						continue // a unit of a packet is not numbered
					}
					x := fabric{seed: seed, segments: 400, paths: skewed(3, 200*us), jitter: 30 * us, cell: cell, id: id, loss: loss}
					t.Run(fmt.Sprintf("seed %d, %s, loss %v, cells of %d", seed, id, loss, cell), func(t *testing.T) {
						list := x.send()
						fixed := Config{Hold: 5 * ms, MinHold: 5 * ms}
						presto, s := receive(t, fixed, list)
						fixed.Discipline = Sequence
						sequence, _ := receive(t, fixed, list)
						for n := range presto {
							if presto[n] > sequence[n] {
								t.Fatalf("segment %d waits until %v, by sequence until %v", n, presto[n], sequence[n])
							}
						}
						if loss == 0 && s.DeliveredOutOfOrder > 0 {
							t.Errorf("order is lost: %+v", s)
						}
						if numbers := id == "numbered" || id == "labelled"; numbers != (s.FlowsNumbered > 0) {
							t.Errorf("taken for numbered: %+v", s)
						}
					})
				}
			}
		}
	}
}

// Without gaps nothing waits; Juggler waits to merge, and no longer.
func TestPush_inOrderIsNotDelayed(t *testing.T) {
	list := fabric{segments: 500, paths: skewed(1, 0), cell: 20, id: "numbered"}.send()
	for _, d := range []Discipline{Presto, Sequence, Juggler, Off} {
		c := Config{Discipline: d}.withDefaults()
		delivered, s := receive(t, c, list)
		for n, at := range delivered {
			if wait := at - list[n].at; wait > 0 && d != Juggler || wait > c.Merge {
				t.Errorf("%v: segment %d waits for %v", d, n, wait)
			}
		}
		if s.InOrder+s.Passed != 501 {
			t.Errorf("%v: %+v", d, s)
		}
	}
}

// A loss inside a flowcell is told at once; only one at its end has to wait.
func TestPush_prestoTellsLossAtOnce(t *testing.T) {
	for _, id := range []string{"numbered", "labelled"} {
		list := fabric{seed: 1, segments: 4000, paths: skewed(4, 100*us), cell: 40, id: id, loss: 0.01}.send()
		_, presto := receive(t, Config{}, list)
		_, sequence := receive(t, Config{Discipline: Sequence}, list)
		t.Logf("%s, presto   %+v", id, presto)
		t.Logf("%s, sequence %+v", id, sequence)
		if presto.TimedOut*4 > sequence.TimedOut {
			t.Errorf("%s: %d time out, by sequence %d", id, presto.TimedOut, sequence.TimedOut)
		}
	}
}

// Streams of all kinds through all disciplines, compared with the oracle on
// the way: see trial.check.
func TestPush_streamsMatchOracle(t *testing.T) {
	var sum Stats
	for seed := range uint64(fewer(30)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		x := fabric{
			seed:     seed,
			segments: 2500,
			calm:     1500,
			again:    time.Duration(1+rng.IntN(12)) * ms,
			paths:    make([]time.Duration, 1+rng.IntN(8)),
			jitter:   time.Duration(rng.IntN(3)) * 40 * us,
			cell:     1 + rng.IntN(62),
			id:       []string{"numbered", "labelled", "counted", "zero", "random"}[rng.IntN(5)],
			loss:     []float64{0, 0.001, 0.02}[rng.IntN(3)],
			copies:   []float64{0, 0, 0.01}[rng.IntN(3)],
		}
		for i := range x.paths {
			x.paths[i] = time.Duration(rng.IntN(2000)) * us
		}
		list := x.send()
		for _, d := range []Discipline{Presto, Sequence, Juggler} {
			t.Run(fmt.Sprintf("seed %d, %v", seed, d), func(t *testing.T) {
				_, s := receive(t, Config{Discipline: d, MinHold: 50 * us, Hold: 8 * ms, FlowPackets: 300}, list)
				sum.TimeoutsPutOff += s.TimeoutsPutOff
				sum.TimeoutsLate += s.TimeoutsLate
				sum.TimeoutsLoss += s.TimeoutsLoss
				sum.FlowsUnnumbered += s.FlowsUnnumbered
				sum.Loss += s.Loss
			})
		}
	}
	if sum.TimeoutsPutOff == 0 || sum.TimeoutsLate == 0 || sum.TimeoutsLoss == 0 || sum.FlowsUnnumbered == 0 || sum.Loss == 0 {
		t.Errorf("the streams leave something untested: %+v", sum)
	}
}

// What a sender sprays packet by packet, and only counts, comes out in order if no path is late
// by as much as a hold. Nothing is given up: a flow begins with the longest hold, and learns.
func TestPush_packetsOverALatePath(t *testing.T) {
	for _, paths := range []int{2, 4, 16} {
		for _, late := range []time.Duration{100 * us, 500 * us, 2 * ms, 9 * ms} {
			for _, id := range []string{"counted", "zero", "random"} {
				x := fabric{seed: uint64(paths), segments: 3000, paths: skewed(paths, late), cell: 1, id: id}
				_, s := receive(t, Config{}, x.send())
				if s.DeliveredOutOfOrder > 0 || s.TimedOut > 0 || s.Filled == 0 {
					t.Errorf("%d paths, one late by %v, %s: %+v", paths, late, id, s)
				}
			}
		}
	}
}
