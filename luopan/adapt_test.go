package luopan

import (
	"testing"
	"time"
)

// adapting is a Table whose rounds a test answers with a round trip of 100 µs.
type adapting struct {
	*tester
	now time.Duration
	rtt time.Duration
}

// round has a choice made, if used, and bytes sent, and answers the next round. It
// returns for how long its answers are good.
func (a *adapting) round(used bool, bytes int, answers ...Answer) time.Duration {
	a.t.Helper()
	if used {
		a.Choose(8, 8, numbers(4), a.now)
	}
	if bytes > 0 {
		a.Sent(8, 0, bytes)
	}
	a.now = max(a.now, a.Next())
	probes := a.probes(a.now)
	if len(probes) != len(answers) {
		a.t.Fatalf("%d probes at %v", len(probes), a.now)
	}
	a.now += a.rtt
	for i, p := range probes {
		if !a.Answer(answer(p, answers[i]), 8, a.now) {
			a.t.Fatal("refused")
		}
	}
	return a.Next() - a.now
}

func newAdapting(t *testing.T, c Config) *adapting {
	a := &adapting{tester: newTest(t, c), rtt: 100 * us}
	a.Choose(8, 8, numbers(4), 0)
	return a
}

func TestAdapt(t *testing.T) {
	const little, much = 1000, busy
	pair := func(x, y Answer) []Answer { return []Answer{x, y} }
	full, mark, none := queue(96), Answer{Marked: true}, Answer{}
	for _, c := range []struct {
		name    string
		used    bool
		bytes   int
		answers func(i int) []Answer
		want    []time.Duration // in round trips, of the third round on
	}{
		{"congestion of some", true, little, func(int) []Answer { return pair(queue(0), queue(9)) }, []time.Duration{1, 1, 1}},
		{"calm", true, little, func(int) []Answer { return pair(queue(0), queue(1)) }, []time.Duration{4, 8, 16, 16}},
		{"calm, with much to send", true, much, func(int) []Answer { return pair(queue(0), queue(1)) }, []time.Duration{1, 1, 1}},
		{"hopeless", true, little, func(int) []Answer { return pair(full, queue(127)) }, []time.Duration{4, 8, 16, 16}},
		{"hopeless, with much to send", true, much, func(int) []Answer { return pair(full, full) }, []time.Duration{4, 8, 16, 16}},
		{"not quite", true, little, func(int) []Answer { return pair(queue(94), queue(127)) }, []time.Duration{1, 1, 1}},
		{"all equal", true, little, func(int) []Answer { return pair(queue(40), queue(41)) }, []time.Duration{2, 4, 8, 16, 16}},
		{"all equal, and growing", true, little, func(i int) []Answer { return pair(queue(uint8(5+5*i)), queue(uint8(5+5*i))) }, []time.Duration{1, 1, 1}},
		{"nobody chooses", false, 0, func(int) []Answer { return pair(queue(0), queue(40)) }, []time.Duration{4, 8, 16, 16}},
		{"no marks", true, little, func(int) []Answer { return pair(none, none) }, []time.Duration{4, 8, 16, 16}},
		{"one mark", true, little, func(int) []Answer { return pair(none, mark) }, []time.Duration{2, 4}}, // delays are equal
		{"marks everywhere", true, much, func(int) []Answer { return pair(mark, mark) }, []time.Duration{4, 8, 16, 16}},
	} {
		a := newAdapting(t, Config{})
		for i := range len(c.want) + 2 {
			got := a.round(c.used, c.bytes, c.answers(i)...)
			if i < 2 {
				continue
			}
			if want := c.want[i-2] * a.rtt; got != want {
				t.Errorf("%s: round %d is good for %v, want %v", c.name, i, got, want)
				break
			}
		}
	}
}

// Congestion that moves brings it back to a round trip at once.
func TestAdapt_wakes(t *testing.T) {
	a := newAdapting(t, Config{})
	for range 7 {
		a.round(true, 0, queue(0), queue(0))
	}
	if got := a.round(true, 0, queue(0), queue(30)); got != 16*a.rtt { // of the rounds before
		t.Fatalf("slow is %v", got)
	}
	if got := a.round(true, 0, queue(0), queue(30)); got != a.rtt {
		t.Errorf("good for %v, want %v", got, a.rtt)
	}
}

// So does what this host sends, in the midst of a round.
func TestAdapt_hurries(t *testing.T) {
	a := newAdapting(t, Config{})
	for range 7 {
		a.round(true, 0, queue(0), queue(0))
	}
	answered := a.now
	a.Sent(8, 0, busy-1)
	if next := a.Next(); next != answered+16*a.rtt {
		t.Fatalf("next at %v", next-answered)
	}
	a.Sent(8, 0, 1)
	if next := a.Next(); next != answered+a.rtt {
		t.Errorf("next at %v, want %v", next-answered, a.rtt)
	}
}

func TestAdapt_bounds(t *testing.T) {
	a := newAdapting(t, Config{MinExpiry: 300 * us, MaxExpiry: 700 * us})
	for i, want := range []time.Duration{300, 600, 700, 700} {
		if got := a.round(true, 0, queue(0), queue(0)); got != want*us {
			t.Errorf("round %d is good for %v, want %v", i, got, want*us)
		}
	}
	a = newAdapting(t, Config{Expiry: 40 * us})
	for range 5 {
		if got := a.round(true, 0, queue(0), queue(0)); got != 40*us {
			t.Errorf("good for %v, though fixed", got)
		}
	}
}

// A delay that has grown everywhere is congestion; the least one is forgotten slowly.
func TestAdapt_delay(t *testing.T) {
	a := newAdapting(t, Config{})
	for range 7 {
		a.round(true, 0, Answer{}, Answer{})
	}
	a.rtt = 400 * us
	a.round(true, 0, Answer{}, Answer{})
	if got := a.round(true, 0, Answer{}, Answer{}); got > a.rtt || got < 100*us {
		t.Errorf("good for %v", got)
	}
}

// Who does not answer is asked ever more rarely, and each host of the rack in turn.
func TestPatience(t *testing.T) {
	table := newTest(t, Config{Idle: time.Hour})
	paths := numbers(4)
	table.Choose(8, 1, paths, 0)
	table.Choose(8, 2, paths, 0)
	now := time.Duration(0)
	var gaps []time.Duration
	for i := range 16 {
		p := table.probes(now)
		if len(p) != 2 || p[0].Host != uint32(1+i%2) || p[1].Host != p[0].Host {
			t.Fatalf("round %d: %+v", i, p)
		}
		gaps = append(gaps, table.Next()-now)
		now = table.Next()
	}
	for i, want := range []time.Duration{10, 10, 20, 20, 40, 40, 80, 80, 160, 160, 320, 320, 640, 640, 1000, 1000} {
		if gaps[i] != want*time.Millisecond {
			t.Fatalf("waited for %v", gaps)
		}
	}
	// So a round trip of most of a second is measured in the end.
	var p []Probe
	for ; p == nil; now = max(now, table.Next()) {
		p = table.probes(now)
	}
	if now = table.destinations[0].began; !table.Answer(answer(p[0], Answer{}), p[0].Host, now+900*time.Millisecond) {
		t.Fatal("refused")
	}
	if d := table.Destinations()[0]; d.RTT != 900*time.Millisecond {
		t.Errorf("round trip %v", d.RTT)
	}
}
