package luopan

import (
	"slices"
	"testing"
	"time"
)

// filling is a Table with three samples of ten paths, whose queues are of 0, 10 and 50
// units where 20 are usual, at a host that has so much of the traffic.
func filling(t *testing.T, c Config, share float64) (*tester, []int, [3]int) {
	c.Samples, c.Expiry, c.QueueUnit = 3, time.Second, 1500
	table := newTest(t, c)
	paths := numbers(10)
	table.Choose(8, 8, paths, 0)
	var p [3]int
	for i, probe := range table.probes(0) {
		p[i] = probe.Path
		table.Answer(answer(probe, queue([]uint8{0, 10, 50}[i])), 8, us)
	}
	d := &table.destinations[0]
	d.share, d.typical = share, 20*1500
	return table, paths, p
}

// Samples and what this host has sent since fill the paths to one level; with them
// all others, which have what is usual before them.
func TestTable_fills(t *testing.T) {
	table, paths, p := filling(t, Config{}, 1)
	table.takes(8, paths, us, p[0])
	table.Sent(8, p[0], 10*1500+1)
	table.takes(8, paths, us, p[1])
	if d := table.Destinations()[0]; d.Samples[0].Path != p[1] || d.Samples[2].Path != p[2] {
		t.Errorf("%v is preferred: %+v", p[1], d.Samples)
	}
	table.Sent(8, p[1], 10*1500+1)
	table.takes(8, paths, us, p[0])
	table.Sent(8, p[0], 10*1500)
	// Both are above what is usual now, by a byte.
	other := table.guesses(8, paths, us)
	if slices.Contains(p[:], other) {
		t.Fatalf("path %d is sampled", other)
	}
	table.Sent(8, other, 6) // of seven paths: less than a byte each
	table.guesses(8, paths, us)
	table.Sent(8, other, 1)
	table.takes(8, paths, us, p[0])
	table.Sent(8, p[0], -1<<40) // nonsense
	table.takes(8, paths, us, p[0])
	table.Sent(99, 0, 1) // nobody
	// The third is next when all have 30 units more.
	table.Sent(8, p[0], 40*1500)
	table.Sent(8, p[1], 40*1500)
	table.Sent(8, other, 7*30*1500-8)
	table.guesses(8, paths, us)
	table.Sent(8, other, 8)
	table.takes(8, paths, us, p[2])
}

// Of what there is too little before a path a host mends its share.
func TestTable_fillsItsShare(t *testing.T) {
	table, paths, p := filling(t, Config{}, .1)
	table.takes(8, paths, us, p[0])
	table.Sent(8, p[0], 1500+1)
	table.takes(8, paths, us, p[1])
	table.Sent(8, p[1], 1500+1)
	table.takes(8, paths, us, p[0])
	table.Sent(8, p[0], 1500)
	table.guesses(8, paths, us)
}

// Who has sent nothing yet takes each path once, the least congested first.
func TestTable_fillsEvenlyAtFirst(t *testing.T) {
	table, paths, p := filling(t, Config{}, 0)
	var got []int
	for range paths {
		path, _ := table.Choose(8, 8, paths, us)
		table.Sent(8, path, 1000)
		got = append(got, path)
	}
	if !slices.Equal(got[:3], p[:]) {
		t.Errorf("%v, samples are %v", got, p)
	}
	slices.Sort(got)
	if !slices.Equal(got, paths) {
		t.Errorf("%v", got)
	}
}

// The paper's luopan takes the least congested sample until it expires.
func TestTable_samplesOnly(t *testing.T) {
	table, paths, p := filling(t, Config{SamplesOnly: true}, .1)
	for range 5 {
		table.takes(8, paths, us, p[0])
		table.Sent(8, p[0], 1<<30)
	}
	if d := table.Destinations()[0]; d.Samples[0].Path != p[0] || d.Samples[2].Path != p[2] {
		t.Errorf("%+v", d.Samples)
	}
	seen, again, last := make(map[int]bool), 0, -1
	for range 300 {
		path := table.guesses(8, paths, time.Minute)
		seen[path] = true
		if path == last {
			again++
		}
		last = path
	}
	if len(seen) != len(paths) || again < 10 { // 30 are to be expected
		t.Errorf("without samples %d paths are taken, %d times the same again", len(seen), again)
	}
}

// A sample that has not been answered is as unknown as any other path.
func TestTable_fillsTheUnanswered(t *testing.T) {
	table := newTest(t, Config{Expiry: time.Second})
	paths := numbers(2)
	table.Choose(8, 8, paths, 0)
	probes := table.probes(0)
	known, silent := probes[0].Path, probes[1].Path
	table.Answer(answer(probes[0], queue(0)), 8, us)
	table.destinations[0].share = 1
	for range 5 {
		table.takes(8, paths, us, known)
		table.Sent(8, known, 1000)
		if path := table.guesses(8, paths, us); path != silent {
			t.Fatalf("path %d", path)
		}
		table.Sent(8, silent, 1000)
	}
	// What was sent meanwhile counts when it is.
	table.Answer(answer(probes[1], queue(0)), 8, 2*us)
	table.Sent(8, known, 1)
	table.takes(8, paths, 2*us, silent)
}

// Without samples paths take turns, from a random one; those to be shunned have none.
func TestTable_turns(t *testing.T) {
	starts := make(map[int]bool)
	for seed := range uint64(40) {
		table := newTest(t, Config{Seed: seed + 1})
		paths := []int{2, 3, 5, 7}
		var got []int
		for range 9 {
			got = append(got, table.guesses(8, paths, 0))
		}
		first := slices.Index(paths, got[0])
		starts[first] = true
		for i, path := range got {
			if path != paths[(first+i)%4] {
				t.Fatalf("in turn came %v", got)
			}
		}
		d := &table.destinations[0]
		for i, path := range paths {
			d.shunned[i] = shunned{time.Second, int32(path)}
		}
		if path := table.guesses(8, paths, 0); path != paths[(first+9)%4] {
			t.Fatalf("all are to be shunned: %d after %v", path, got)
		}
		d.shunned[0].until = 0
		for range 3 {
			if path := table.guesses(8, paths, 0); path != paths[0] {
				t.Fatalf("path %d is to be shunned", path)
			}
		}
	}
	if len(starts) != 4 {
		t.Errorf("all begin with %v of the paths", starts)
	}
}

// A host's share is its rate by that of the d paths that it knows, and 1 at most.
func TestTable_gauges(t *testing.T) {
	const rate = 8e6 // a byte a microsecond
	for _, c := range []struct {
		samples, bytes int // a millisecond
		want           float64
	}{{2, 500, .25}, {4, 500, .125}, {2, 4000, 1}, {1, 500, .5}, {2, 0, 0}} {
		table := newTest(t, Config{Samples: c.samples, Expiry: time.Millisecond, RateBits: rate})
		paths := numbers(8)
		for i := range 40 {
			now := time.Duration(i) * time.Millisecond
			table.Choose(8, 8, paths, now)
			table.answerAll(now, func(Probe) Answer { return queue(0) })
			table.Sent(8, i%8, c.bytes)
			if got := table.destinations[0].share; i > 1 && got != c.want {
				t.Fatalf("%+v: share %v", c, got)
			}
		}
		// It follows what is sent.
		for i := 40; i < 80; i++ {
			now := time.Duration(i) * time.Millisecond
			table.Choose(8, 8, paths, now)
			table.answerAll(now, func(Probe) Answer { return queue(0) })
		}
		if got := table.destinations[0].share; got > c.want/100 {
			t.Errorf("%+v: share %v of nothing", c, got)
		}
	}
}
