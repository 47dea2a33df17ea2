package luopan

import (
	"testing"
	"time"
)

func TestTable_metricByCapability(t *testing.T) {
	const clock = -3 * time.Hour // of another host
	for _, c := range []struct {
		name    string
		answers []Answer        // by path
		after   []time.Duration // when they come
		metric  Metric
		best    []int // in turn, each after a byte by the one before; -1: random
	}{
		{"queue", []Answer{queue(5), queue(3)}, []time.Duration{10, 20}, QueueBytes, []int{1}},
		{"queue beyond the scale", []Answer{queue(200), queue(126)}, []time.Duration{10, 10}, QueueBytes, []int{1}},
		{"queue before all else", []Answer{
			{Queue: 1, Meters: 1, Marked: true, Received: clock + 500*us}, {Queue: 2, Meters: 1, Received: clock + 10*us},
		}, []time.Duration{900, 20}, QueueBytes, []int{0}},
		{"delay where a switch writes none", []Answer{
			{Queue: 0, Received: clock + 90*us}, {Queue: 99, Meters: 3, Received: clock + 20*us},
		}, []time.Duration{100, 100}, OneWay, []int{1}},
		{"delay one way, not back", []Answer{{Received: clock + 20*us}, {Received: clock + 60*us}},
			[]time.Duration{100, 70}, OneWay, []int{0}},
		{"delay before 0 on the other clock", []Answer{{Received: -5 * us}, {Received: -80 * us}},
			[]time.Duration{100, 100}, OneWay, []int{1}},
		{"round trip where one has no clock", []Answer{{Received: clock + 20*us}, {}},
			[]time.Duration{100, 70}, RoundTrip, []int{1}},
		{"round trip where one has a queue and no clock", []Answer{{Received: clock}, {Queue: 1, Meters: 1}},
			[]time.Duration{100, 70}, RoundTrip, []int{1}},
		{"a mark is worse than any delay", []Answer{{Marked: true}, {}}, []time.Duration{20, 900}, RoundTrip, []int{1}},
		{"less delay among the marked", []Answer{{Marked: true}, {Marked: true}}, []time.Duration{20, 900}, RoundTrip, []int{0}},
		{"noise", []Answer{{}, {}}, []time.Duration{100, 101}, RoundTrip, nil},
	} {
		table := newTest(t, Config{Expiry: time.Second})
		paths := numbers(2)
		table.Choose(8, 8, paths, 0)
		probes := table.probes(0)
		if probes[0].Path == 1 {
			probes[0], probes[1] = probes[1], probes[0]
		}
		now := time.Duration(0)
		for _, p := range []int{0, 1} { // in order of time
			if c.after[1] < c.after[0] {
				p = 1 - p
			}
			now = c.after[p] * us
			if !table.Answer(answer(probes[p], c.answers[p]), 8, now) {
				t.Fatal("refused")
			}
		}
		if is := table.Destinations()[0]; is.Metric != c.metric || len(is.Samples) != 2 {
			t.Errorf("%s: compared by %v: %+v", c.name, is.Metric, is)
		}
		for _, want := range c.best {
			if p, sampled := table.Choose(8, 8, paths, now); p != want || !sampled {
				t.Errorf("%s: path %d, sampled %v", c.name, p, sampled)
			}
		}
		if c.best == nil { // equal: one after the other
			a, _ := table.Choose(8, 8, paths, now)
			table.Sent(8, a, 1000)
			if b, sampled := table.Choose(8, 8, paths, now); b == a && sampled {
				t.Errorf("%s: %d is taken twice", c.name, a)
			}
		}
	}
}

// Delays count in bytes at the rate of a path.
func TestTable_delayInBytes(t *testing.T) {
	table := newTest(t, Config{Expiry: time.Second, RateBits: 1e9})
	paths := numbers(4)
	table.Choose(8, 8, paths, 0)
	p := table.probes(0)
	table.Answer(answer(p[0], Answer{}), 8, 100*us)
	table.Answer(answer(p[1], Answer{}), 8, 900*us) // 0.7 or 0.8 ms later: about 95 KB
	if d := table.Destinations()[0]; d.Samples[0].Path != p[0].Path || d.Metric != RoundTrip {
		t.Errorf("%+v", d)
	}
	if least, most := table.round(0, 0)[0].rank, table.round(0, 0)[1].rank; least != 0 || most < 87_500 || most > 100_000 {
		t.Errorf("%d and %d bytes", least, most)
	}
}

// A probe that does not come back is a full queue, and its path is shunned by what
// no sample decides on.
func TestTable_shunsTheSilent(t *testing.T) {
	table := newTest(t, Config{Expiry: 40 * us, Budget: 1e6})
	paths := numbers(4)
	const dead = 2
	var by [4]int
	for i := range 4000 {
		now := time.Duration(i) * 10 * us
		for range 4 {
			path, _ := table.Choose(8, 8, paths, now)
			table.Sent(8, path, 10_000)
			by[path]++
		}
		for _, p := range table.probes(now) {
			if p.Path != dead {
				table.Answer(answer(p, queue(1)), 8, now)
			}
		}
	}
	for path, n := range by {
		if path == dead && n > 16000*3/100 || path != dead && n < 16000/4 {
			t.Errorf("%d flowcells by path: %v", n, by)
		}
	}
}
