package luopan

import (
	"testing"
	"time"
)

// Round trips that become far longer than rounds: 100 µs, then 5 ms.
func TestAnswer_late(t *testing.T) {
	const slow = 5 * time.Millisecond
	table := newTest(t, Config{Idle: time.Hour})
	paths := numbers(8)
	table.Choose(8, 8, paths, 0)
	now := time.Duration(0)
	for range 20 {
		now = max(now, table.Next())
		asked := table.probes(now)
		now += 100 * us
		for _, p := range asked {
			if !table.Answer(answer(p, queue(1)), 8, now) {
				t.Fatal("refused")
			}
		}
	}
	type onItsWay struct {
		Probe
		at time.Duration
	}
	var way []onItsWay
	begin, rounds := table.Stats(), uint64(0)
	for table.Stats().Answers < begin.Answers+10 {
		if rounds++; rounds > 60 {
			t.Fatalf("no round is waited for: %+v", table.Stats())
		}
		for len(way) > 0 && way[0].at+slow <= table.Next() {
			now = max(now, way[0].at+slow)
			table.Answer(answer(way[0].Probe, queue(1)), 8, now)
			way = way[1:]
		}
		now = max(now, table.Next())
		for _, p := range table.probes(now) {
			way = append(way, onItsWay{p, now})
		}
	}
	s := table.Stats()
	// It doubled from 400 µs on until the first late answer came: 0.4, 1.2, 2.8, 6 ms.
	if silent := s.Silent - begin.Silent; silent == 0 || silent > 5 || s.Late == 0 || s.Unknown > 0 {
		t.Errorf("%d rounds were silent: %+v", silent, s)
	}
	if d := table.Destinations()[0]; d.RTT < slow/4 || d.RTT > slow {
		t.Errorf("round trip %v", d.RTT)
	}
}

// A late answer counts once, from who was asked, and as no sample; how long rounds
// are waited for follows it, up to the bound.
func TestAnswer_lateCountsOnce(t *testing.T) {
	table := newTest(t, Config{Idle: time.Hour})
	paths := numbers(8)
	table.Choose(8, 8, paths, 0)
	old := table.probes(0)
	begun := table.Next() // given up after firstPatience
	table.probes(begun)
	const rtt = 15 * time.Millisecond
	if table.Answer(answer(old[0], queue(0)), 7, rtt) || table.Stats().WrongHost != 1 || table.Destinations()[0].RTT != 0 {
		t.Errorf("of another host: %+v", table.Stats())
	}
	if table.Answer(answer(old[0], queue(0)), 8, rtt) || table.Stats().Late != 1 || table.Destinations()[0].RTT != rtt {
		t.Errorf("late: %+v", table.Stats())
	}
	if table.Next() != begun+4*rtt {
		t.Errorf("the round of %v is waited for until %v", begun, table.Next())
	}
	if table.Answer(answer(old[0], queue(0)), 8, 2*rtt) || table.Stats().Unknown != 1 || table.Destinations()[0].RTT != rtt {
		t.Errorf("again: %+v", table.Stats())
	}
	table.guesses(8, paths, 2*rtt)
	// Held back for an hour: a round is waited for no longer than a second.
	if table.Answer(answer(old[1], queue(0)), 8, begun+time.Hour); table.Stats().Late != 2 || table.Next() > begun+maxPatience {
		t.Errorf("%+v, next at %v", table.Stats(), table.Next())
	}
}

// Of rounds gone by no more than the latest 8 probes are remembered.
func TestAnswer_lateIsBounded(t *testing.T) {
	table := newTest(t, Config{Samples: 3, Idle: time.Hour})
	table.Choose(8, 8, numbers(8), 0)
	var asked []Probe
	for len(asked) < 60 {
		asked = append(asked, table.probes(max(0, table.Next()))...)
	}
	now := table.Next() - 1
	for i := range asked[:57] { // the last three are those of the round under way
		table.Answer(answer(asked[i], queue(0)), 8, now)
		if s := table.Stats(); s.Late != uint64(max(0, i-48)) || s.Late+s.Unknown != uint64(i+1) {
			t.Fatalf("after %d: %+v", i+1, s)
		}
	}
}
