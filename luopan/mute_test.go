package luopan

import (
	"testing"
	"time"
)

// lab is a Table and the hosts that it asks, some of which run no weft.
type lab struct {
	*tester
	plain map[uint32]bool
	asked map[uint32]int // probes by host
	now   time.Duration
}

func newLab(t *testing.T, plain ...uint32) *lab {
	l := &lab{newTest(t, Config{}), make(map[uint32]bool), make(map[uint32]int), 0}
	for _, host := range plain {
		l.plain[host] = true
	}
	return l
}

// run has traffic go to hosts of rack 8, and others answer 100 µs after, for a time.
func (l *lab) run(d time.Duration, hosts ...uint32) {
	clear(l.asked)
	paths := numbers(8)
	end, turn := l.now+d, 0
	traffic := l.now
	for l.now < end {
		if traffic <= l.now {
			l.Choose(8, hosts[turn%len(hosts)], paths, l.now)
			turn++
			traffic += 5 * time.Millisecond
		}
		asked := l.probes(l.now)
		for _, p := range asked {
			l.asked[p.Host]++
			if !l.plain[p.Host] {
				l.Answer(answer(p, queue(1)), p.Host, l.now+100*us)
			}
		}
		l.now = max(l.now+100*us, min(l.Next(), traffic))
	}
}

func (l *lab) wants(host uint32, least, most int) {
	l.t.Helper()
	if n := l.asked[host]; n < least || n > most {
		l.t.Errorf("%v: host %d got %d probes, want %d to %d", l.now, host, n, least, most)
	}
}

const manyBounds = 20

// A host without weft is asked ever more rarely, down to one round in the bound, be it
// alone in its rack or not; when it begins to run weft that is found within the bound.
func TestMute_plain(t *testing.T) {
	for name, hosts := range map[string][]uint32{
		"alone": {1}, "beside one with weft": {1, 2}, "beside many": {1, 2, 3, 4, 5, 6, 7, 8}, "after many": {2, 3, 4, 5, 6, 7, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			l.run(40*time.Second, hosts...)
			l.wants(1, 20, 28) // a round each at 0 and about 10, 30, 70 ms and so on
			l.run(manyBounds*maxMute, hosts...)
			l.wants(1, 2*manyBounds-4, 2*manyBounds)
			for _, host := range hosts {
				if host != 1 {
					l.wants(host, 1000, 1e9)
				}
			}
			l.plain[1] = false
			l.run(maxMute+time.Second, hosts...)
			l.wants(1, 100, 1e9)
		})
	}
}

// Neither pauses after which its rack is forgotten nor neighbours without weft bring a
// silent host more probes.
func TestMute_outlivesItsRack(t *testing.T) {
	hosts := []uint32{1, 2, 3, 4, 5, 6}
	l := newLab(t, hosts...)
	l.run(40*time.Second, hosts...)
	total := make(map[uint32]int)
	pauses := int(manyBounds * maxMute / (4 * time.Second))
	for range pauses {
		l.run(time.Second, hosts...)
		for host, n := range l.asked {
			total[host] += n
		}
		l.now += 3 * time.Second
		l.probes(l.now) // forgets
	}
	if l.Stats().Idle == 0 {
		t.Error("the rack was never forgotten")
	}
	for _, host := range hosts {
		if n := total[host]; n < manyBounds || n > 2*manyBounds+2 {
			t.Errorf("host %d got %d probes in %d times the bound", host, n, manyBounds)
		}
	}
}

// Whoever sends probes runs weft.
func TestMute_heard(t *testing.T) {
	l := newLab(t, 1)
	l.run(100*time.Second, 1)
	l.Heard(8, 2, l.now) // of whom nothing is known
	l.Heard(9, 3, l.now)
	l.run(time.Second, 1)
	before := l.asked[1]
	// Forged, it brings one round, and no more of them than an answer is waited for.
	for range 100 {
		l.Heard(8, 1, l.now)
		l.run(10*time.Millisecond, 1)
		before += l.asked[1]
	}
	if before < 2 || before > 6 {
		t.Errorf("%d probes in two seconds", before)
	}
	l.run(30*time.Second, 1)
	l.wants(1, 2, 4)
	l.plain[1] = false
	l.Heard(8, 1, l.now)
	l.run(100*time.Millisecond, 1)
	l.wants(1, 10, 1e9)
}

// A new host of a rack is asked at once, though all others are silent.
func TestMute_newHost(t *testing.T) {
	l := newLab(t, 1)
	l.run(100*time.Second, 1)
	l.run(100*time.Millisecond, 2)
	l.wants(2, 10, 1e9)
}

// A host that has answered is not taken for a plain one when its paths die: after a
// minute it is asked every second still, and after a second at least; one that has
// ceased to run weft is found out in the end.
func TestMute_deadIsNotPlain(t *testing.T) {
	l := newLab(t)
	for range 2 {
		l.run(time.Second, 1)
		l.wants(1, 100, 1e9)
		l.plain[1] = true
		l.run(40*time.Second, 1)
		l.run(10*time.Second, 1)
		l.wants(1, 18, 22)
		l.plain[1] = false
		l.run(time.Second+time.Millisecond, 1)
		l.wants(1, 100, 1e9)
	}
	l.plain[1] = true
	l.run(2*time.Minute, 1)
	l.run(manyBounds*maxMute, 1)
	l.wants(1, 2*manyBounds-4, 2*manyBounds)
}

// An answer while the rack rests, to the latest round or an older one, counts.
func TestMute_answersAtLast(t *testing.T) {
	for _, older := range []bool{false, true} {
		l := newTest(t, Config{Idle: time.Hour})
		l.Choose(8, 1, numbers(8), 0)
		var rounds [][]Probe
		for len(l.destinations) == 0 || !l.destinations[0].resting {
			if p := l.probes(l.Next()); p != nil {
				rounds = append(rounds, p)
			}
		}
		now, late := l.now+us, rounds[len(rounds)-1]
		if older {
			late = rounds[len(rounds)-2]
		}
		if got := l.Answer(answer(late[0], queue(1)), 1, now); got == older {
			t.Errorf("taken for a sample: %v", got)
		}
		if next := l.Next(); next > now+time.Second || len(l.mutes.hosts) > 0 || !older && l.destinations[0].resting {
			t.Errorf("older %v: at %v the next is due at %v; %d hosts are silent", older, now, next, len(l.mutes.hosts))
		}
	}
}

// Racks that rest leave the budget to others.
func TestMute_paysForNothing(t *testing.T) {
	l := newTest(t, Config{Budget: 100})
	paths := numbers(4)
	sent, end := 0, 10*time.Second
	for now := time.Duration(0); now < end; now += time.Millisecond {
		for rack := range uint32(50) {
			l.Choose(rack, rack, paths, now)
		}
		for _, p := range l.probes(now) {
			sent++
			if p.Host == 0 {
				l.Answer(answer(p, queue(1)), 0, now)
			}
		}
	}
	if least := 950; sent < least {
		t.Errorf("%d probes, want %d at least", sent, least)
	}
}

// What is remembered of silent hosts is bounded, and all that is remembered can be
// forgotten.
func TestMutes_bounded(t *testing.T) {
	var m mutes
	for i := range uint32(5 * maxMutes) {
		m.silent(i, false, 0)
		if i%3 == 0 {
			m.answered(i)
			m.silent(i, false, 0)
		}
		if len(m.hosts) > maxMutes || len(m.ring) > maxMutes {
			t.Fatalf("%d hosts, %d in the ring", len(m.hosts), len(m.ring))
		}
	}
	if _, known := m.hosts[5*maxMutes-1]; !known || len(m.hosts) < maxMutes/2 {
		t.Errorf("%d hosts, the latest: %v", len(m.hosts), known)
	}
}
