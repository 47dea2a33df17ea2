package luopan

import (
	"slices"
	"testing"
	"time"
)

const us = time.Microsecond

// Luopan §3.1 and 3.2, step by step.
func TestTable_rounds(t *testing.T) {
	table := newTest(t, Config{Expiry: 40 * us})
	paths := []int{3, 5, 7, 9}
	if table.Next() != Never {
		t.Fatal("something is due of nothing")
	}
	// The first flowcell takes a random path, and probes go out at once.
	if p := table.guesses(8, paths, 100*us); !slices.Contains(paths, p) {
		t.Fatalf("path %d", p)
	}
	if table.Next() > 100*us {
		t.Fatalf("next is due at %v", table.Next())
	}
	first := table.probes(100 * us)
	if len(first) != 2 || first[0].Path == first[1].Path || first[0].Token == first[1].Token || first[0].Host != 8 || first[0].Destination != 8 {
		t.Fatalf("probes %+v", first)
	}
	table.guesses(8, paths, 119*us)
	// The first answer decides, a better one later on as well.
	worse, better := answer(first[0], queue(9)), answer(first[1], queue(2))
	if !table.Answer(worse, 8, 120*us) {
		t.Fatal("refused")
	}
	table.takes(8, paths, 121*us, worse.Path)
	if !table.Answer(better, 8, 130*us) {
		t.Fatal("refused")
	}
	table.takes(8, paths, 131*us, better.Path)
	// 40 µs after the first answer the next two are probed.
	if next := table.Next(); next != 160*us {
		t.Fatalf("next is due at %v", next)
	}
	if p := table.probes(159 * us); p != nil {
		t.Fatalf("too early: %v", p)
	}
	second := table.probes(160 * us)
	if len(second) != 2 {
		t.Fatalf("%v", second)
	}
	// What is old is used for another 40 µs, or two round trips.
	table.takes(8, paths, 199*us, better.Path)
	table.guesses(8, paths, 201*us)
	// What was answered in a round that is over is not waited for any more.
	if table.Answer(worse, 8, 202*us) || table.Stats().Unknown != 1 {
		t.Fatalf("%+v", table.Stats())
	}
	table.Answer(answer(second[1], queue(100)), 8, 203*us)
	table.takes(8, paths, 204*us, second[1].Path)
	if s := table.Stats(); s.Rounds != 2 || s.Probes != 4 || s.Answers != 3 || s.Sampled != 4 || s.Unsampled != 3 || s.Destinations != 1 {
		t.Errorf("%+v", s)
	}
}

func TestTable_neverADeadPath(t *testing.T) {
	table := newTest(t, Config{Expiry: 40 * us})
	all := []int{0, 1}
	table.Choose(8, 8, all, 0)
	table.answerAll(us, func(p Probe) Answer { return queue(uint8(10 * p.Path)) })
	table.takes(8, all, 2*us, 0)
	// What the topology says counts at once; the other sample is still good.
	table.takes(8, []int{1, 2}, 3*us, 1)
	for range 100 {
		if p := table.guesses(8, []int{2, 3}, 4*us); p != 2 && p != 3 {
			t.Fatalf("path %d", p)
		}
	}
	table.takes(8, all, 5*us, 0) // it has come back
	if p, sampled := table.Choose(8, 8, []int{4}, 6*us); p != 4 || sampled {
		t.Errorf("the only path is %d", p)
	}
	if p, sampled := table.Choose(8, 8, nil, 6*us); p != -1 || sampled {
		t.Errorf("no path is %d", p)
	}
}

// Where there is nothing to choose from, nothing is probed.
func TestTable_onePathIsNotProbed(t *testing.T) {
	table := newTest(t, Config{})
	table.Choose(8, 8, []int{1}, 0)
	if table.Next() != Never || table.Stats().Destinations != 0 {
		t.Errorf("next at %v, %+v", table.Next(), table.Stats())
	}
}

func TestTable_probesAllWhereThereAreFew(t *testing.T) {
	table := newTest(t, Config{Samples: 5})
	table.Choose(8, 8, []int{2, 4, 6}, 0)
	var probed []int
	for _, p := range table.probes(0) {
		probed = append(probed, p.Path)
	}
	slices.Sort(probed)
	if !slices.Equal(probed, []int{2, 4, 6}) {
		t.Errorf("probed %v", probed)
	}
}

// Every pair of paths is as likely, in either order.
func TestTable_drawsUniformly(t *testing.T) {
	table := newTest(t, Config{Expiry: us, Budget: maxBudget})
	const n, rounds = 5, 40_000
	paths := numbers(n)
	var seen [n][n]int
	for i := range rounds {
		now := time.Duration(i) * 10 * us
		table.Choose(8, 8, paths, now)
		p := table.probes(now)
		seen[p[0].Path][p[1].Path]++
		table.Answer(answer(p[0], queue(1)), 8, now)
	}
	for i := range n {
		for j := range n {
			want := rounds / (n * (n - 1)) // 2,000; its deviation is 44
			if got := seen[i][j]; i == j && got > 0 || i != j && (got < want-220 || got > want+220) {
				t.Errorf("%d and %d were probed %d times, want about %d", i, j, got, want)
			}
		}
	}
}

// The hosts of a rack are asked in turn.
func TestTable_asksHostsInTurn(t *testing.T) {
	table := newTest(t, Config{Expiry: 40 * us, Budget: 1e6})
	paths := numbers(4)
	var asked []uint32
	for i := range 12 {
		now := time.Duration(i) * 100 * us
		for host := range uint32(3) {
			table.Choose(8, 100+host, paths, now)
		}
		p := table.probes(now)
		asked = append(asked, p[0].Host)
		for _, p := range p {
			table.Answer(answer(p, queue(0)), p.Host, now)
		}
	}
	if !slices.Equal(asked, slices.Repeat([]uint32{100, 101, 102}, 4)) {
		t.Errorf("asked %v", asked)
	}
	// Only the latest few are remembered.
	for host := range uint32(1000) {
		table.Choose(8, host, paths, 2*time.Millisecond)
	}
	for i := range 8 {
		p := table.probes(time.Duration(i+20) * 100 * us)
		if p[0].Host < 1000-maxHosts {
			t.Errorf("host %d", p[0].Host)
		}
		table.Answer(answer(p[0], queue(0)), p[0].Host, time.Duration(i+20)*100*us)
	}
}
