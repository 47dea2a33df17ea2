package liveness

import (
	"fmt"
	"testing"
	"time"

	"weft/topology"
)

// pause has a host's process not run for a time. What has come in meanwhile it reads
// before it looks at what is due, or after that.
func (s *world) pause(h *simHost, d time.Duration, readsFirst bool) {
	h.stopped = true
	s.run(s.now + d)
	h.stopped = false
	read := func() {
		for _, b := range h.waiting {
			s.answer(h, b)
		}
		h.waiting = nil
	}
	if readsFirst {
		read()
	}
	h.w.Tick(s.now)
	h.w.Probes(func(p *Probe) { s.probe(h, *p) })
	read()
	s.settle(h)
}

// starve has a host's process run for only some of the time, until the end.
func (s *world) starve(h *simHost, runs, away, end time.Duration) {
	for i := 0; s.now < end; i++ {
		s.run(s.now + time.Duration(s.rng.Int64N(int64(2*runs))))
		s.pause(h, time.Duration(s.rng.Int64N(int64(2*away))), i%2 == 0)
	}
}

// A process that is not run, for long or for short times or hardly ever, finds nothing
// missing and nobody slow in a fabric in which nothing is lost. What is missed because it
// was not run for less than the shortest timeout comes home late, and is hardly anything.
func TestStalls_convictNobody(t *testing.T) {
	for name, c := range map[string]struct{ runs, away time.Duration }{
		"for a second":           {500 * time.Millisecond, time.Second},
		"for 50 ms":              {100 * time.Millisecond, 50 * time.Millisecond},
		"for 50 ms, again":       {10 * time.Millisecond, 50 * time.Millisecond},
		"all but a millisecond":  {time.Millisecond, 100 * time.Millisecond},
		"all but a moment":       {100 * time.Microsecond, 20 * time.Millisecond},
		"an interval every five": {80 * time.Millisecond, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(fewer(3)) {
				s := newWorld(t, "fat-tree:k=4", seed)
				dst := s.node("h3.1.3")
				h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
				s.keepActive(h, dst)
				s.run(2 * time.Second)
				s.check = func(h *simHost, _ *topology.Topology) {
					t.Errorf("seed %d, at %v: avoids %v: %+v", seed, s.now, names(h.topo), h.w.Suspects())
				}
				before := h.w.Stats()
				s.starve(h, c.runs, c.away, s.now+10*time.Second)
				st := h.w.Stats()
				if carriage := h.w.Carriage(); carriage.Plain(s.edge(dst)) || st.GivenUp > 0 || st.Unproved > 0 {
					t.Errorf("seed %d: plain %v, %q: %+v", seed, carriage.Plain(s.edge(dst)), carriage.Why(s.edge(dst)), st)
				}
				if missed, sent := st.Missed-before.Missed, st.Sent-before.Sent; missed*50 > sent || st.Missed != st.Late || st.FullMissed > 0 || sent == 0 {
					t.Errorf("seed %d: %+v, before %+v", seed, st, before)
				}
				for _, p := range h.w.Paths() {
					if p.State != Up || p.RTT > 5*time.Millisecond {
						t.Errorf("seed %d: %+v", seed, p)
					}
				}
			}
		})
	}
}

// Who is really dead is given up within a second of the time that the process is run,
// however little that is, and not sooner than without.
func TestStalls_deadIsGivenUp(t *testing.T) {
	for _, link := range []string{"h3.1.3-e3.1", "h0.0.2-e0.0"} { // nobody answers; not even boomerangs come home
		for _, c := range []struct{ runs, away time.Duration }{
			{time.Hour, time.Hour}, // it is always run
			{100 * time.Millisecond, time.Second},
			{100 * time.Millisecond, 50 * time.Millisecond},
			{5 * time.Millisecond, 50 * time.Millisecond},
			{time.Millisecond, 20 * time.Millisecond},
		} {
			t.Run(fmt.Sprintf("%s, runs %v, away %v", link, c.runs, c.away), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(fewer(3)) {
					s := newWorld(t, "fat-tree:k=4", seed)
					dst := s.node("h3.1.3")
					h := s.watch(s.node("h0.0.2"), Config{MTU: 1500})
					s.keepActive(h, dst)
					s.run(2 * time.Second)
					s.both(s.link(link), fault{loss: 1})
					died, away := s.now, h.w.Stats().Stalled
					for !h.w.Carriage().Plain(s.edge(dst)) && s.now < died+30*time.Second {
						if c.runs == time.Hour {
							s.run(s.now + 5*time.Millisecond)
						} else {
							s.starve(h, c.runs, c.away, s.now+1)
						}
					}
					took := s.now - died - (h.w.Stats().Stalled - away)
					if took > time.Second || took < unproved {
						t.Errorf("seed %d: given up after %v, of which it was run for %v; plain %v: %q", seed, s.now-died, took,
							h.w.Carriage().Plain(s.edge(dst)), h.w.Carriage().Why(s.edge(dst)))
					}
				}
			})
		}
	}
}

// Who is stopped while an answer is on its way, and nothing else is due for long, takes the
// answer for one in time, whenever it gets to read it, and does not measure by it.
func TestStalls_answersWaitToBeRead(t *testing.T) {
	for _, readsFirst := range []bool{false, true} {
		s := newWorld(t, "fat-tree:k=4", 1)
		h := s.watch(s.node("h0.0.2"), Config{Interval: time.Second})
		s.run(5 * time.Second)
		for range 20 {
			var probed *Probe
			s.sent = func(_ *simHost, p *Probe) { probed = p }
			for probed == nil {
				s.run(max(h.w.Next(), s.now))
			}
			s.sent = nil
			before := h.w.Paths()
			s.pause(h, 3*time.Second, readsFirst)
			for i, p := range h.w.Paths() {
				if p.RTT != before[i].RTT || p.State != Up {
					t.Errorf("reads first %v: %+v, before %+v", readsFirst, p, before[i])
				}
			}
			s.run(s.now + 100*time.Millisecond)
		}
		if st := h.w.Stats(); st.Missed > 0 || st.Stalls < 20 {
			t.Errorf("reads first %v: %+v", readsFirst, st)
		}
	}
}

// A caller that is late every time still gets on.
func TestStalls_everyCallIsLate(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 1)
	h := s.watch(s.node("h0.0.2"), Config{})
	s.run(time.Second)
	h.stopped = true // from here on by hand
	was := h.w.Stats().Sent
	const calls = 1000
	for range calls {
		h.w.Tick(h.w.Next() + 20*time.Millisecond)
		h.w.Probes(func(*Probe) {})
	}
	if st := h.w.Stats(); st.Sent-was < calls/4 || st.Missed == 0 || st.Stalled < calls*20*time.Millisecond {
		t.Errorf("%d probes in %d calls: %+v", st.Sent-was, calls, st)
	}
}

// A caller that says that sending took long has the probes' time begin when it ended.
func TestWatcher_awayWhileSending(t *testing.T) {
	s := newWorld(t, "fat-tree:k=4", 1)
	h := s.watch(s.node("h0.0.2"), Config{})
	s.run(time.Second)
	sent := h.w.Next()
	h.w.Tick(sent)
	h.w.Probes(func(*Probe) {})
	due, next := h.w.clock(h.w.awaited.late.Next()), h.w.Next()
	h.w.Away(sent + 5*time.Millisecond)
	if h.w.Next() != next || h.w.Stats().Stalls > 0 {
		t.Errorf("5 ms are left out: %v, %v", h.w.Next(), next)
	}
	const took = 70 * time.Millisecond
	h.w.Away(sent + took)
	if got := h.w.clock(h.w.awaited.late.Next()); got != due+took || h.w.Next() != next+took || h.w.Stats().Stalled != took {
		t.Errorf("an answer is awaited until %v and the next probe due at %v; want %v and %v", got, h.w.Next(), due+took, next+took)
	}
}
