package permutation

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"time"

	"weft/bench/testbed"
	"weft/internal/simnet"
	"weft/topology"
)

func TestRandom_isAPermutationAcrossPods(t *testing.T) {
	for _, k := range []int{2, 4, 6, 8} {
		fatTree, err := topology.FatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[topology.NodeID]bool)
		for seed := range uint64(50) {
			clear(seen)
			for from, to := range Random(fatTree, seed) {
				if seen[to] {
					t.Fatalf("k=%d seed %d: host %d receives twice", k, seed, to)
				}
				seen[to] = true
				if n := len(fatTree.Paths(topology.NodeID(from), to).Live); n != k*k/4 {
					t.Fatalf("k=%d seed %d: %d sends to %d over %d paths", k, seed, from, to, n)
				}
			}
		}
	}
}

func TestRandom_goesAsFarAsThereIs(t *testing.T) {
	for spec, paths := range map[string]int{
		"leaf-spine:leaves=2,spines=3,hosts=4": 3,
		"leaf-spine:leaves=1,spines=3,hosts=4": 0,
		"vl2:d0=2,d1=4,d2=4,hosts=2":           4,
		"vl2:d0=2,d1=4,d2=2,hosts=2":           2, // one group
		"fat-tree:k=4,hosts=4":                 4,
	} {
		top, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			seen := make(map[topology.NodeID]bool)
			for from, to := range Random(top, seed) {
				if n := len(top.Paths(topology.NodeID(from), to).Live); n != paths || seen[to] || topology.NodeID(from) == to {
					t.Fatalf("%s, seed %d: %d sends to %d over %d paths, want %d; a receiver twice: %v", spec, seed, from, to, n, paths, seen[to])
				}
				seen[to] = true
			}
		}
	}
}

func TestRandom_differsBySeed(t *testing.T) {
	fatTree, _ := topology.FatTree(4)
	a, b, c := Random(fatTree, 1), Random(fatTree, 1), Random(fatTree, 2)
	same := 0
	for i := range a {
		if a[i] != b[i] {
			t.Fatal("the same seed gave two permutations")
		}
		if a[i] == c[i] {
			same++
		}
	}
	if same == len(a) {
		t.Error("two seeds gave one permutation")
	}
}

func inMemory(t *testing.T) (testbed.Testbed, *topology.Topology) {
	t.Helper()
	fatTree, _ := topology.FatTree(4)
	return testbed.InMemory(testbed.Config{Topology: fatTree, RateMbit: 4, Seed: 1}), fatTree
}

func TestRun_measures(t *testing.T) {
	bed, fatTree := inMemory(t)
	rows, err := testbed.Select([]string{"drb"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := bed.Start(context.Background(), rows[0])
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var reports int
	r, err := Run(context.Background(), s, Random(fatTree, 1), Load{
		Warmup: 300 * time.Millisecond, Duration: 500 * time.Millisecond,
		Progress: func(elapsed, total time.Duration) { reports++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Mbit) != 16 || len(r.RTTMicros) == 0 || reports == 0 || r.Elapsed < 400*time.Millisecond {
		t.Errorf("result %+v, %d reports", r, reports)
	}
	var sum, up, down float64
	for _, m := range r.Mbit {
		sum += m
		// Bursts out of the queues may beat the link for a moment.
		if m > 2*4 {
			t.Errorf("a host has %v Mbit/s over a link of 4", m)
		}
	}
	for _, l := range r.Counters.Links {
		up += float64(l.Up)
		down += float64(l.Down)
	}
	if sum == 0 || up == 0 || down == 0 {
		t.Errorf("nothing moved: %v Mbit/s, %v bytes up, %v down", sum, up, down)
	}
}

func TestRun_endsWithItsContext(t *testing.T) {
	before := runtime.NumGoroutine()
	bed, fatTree := inMemory(t)
	rows, _ := testbed.Select([]string{"ecmp"})
	s, err := bed.Start(context.Background(), rows[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = Run(ctx, s, Random(fatTree, 1), Load{Duration: time.Hour})
	s.Close()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("ended after %v", took)
	}
	for range 200 {
		if runtime.NumGoroutine() <= before+1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// Virtual time gives the same result whatever the machine does, and counts what real
// time counts.
func TestRunVirtual_isReproducible(t *testing.T) {
	fatTree, _ := topology.FatTree(4)
	c := testbed.Config{Topology: fatTree, RateMbit: 4, Seed: 1}
	rows, err := testbed.Select([]string{"drb"})
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	var results [2]Result
	for i := range results {
		var reports int
		load := Load{Warmup: 300 * time.Millisecond, Duration: 500 * time.Millisecond, Progress: func(elapsed, total time.Duration) { reports++ }}
		if results[i], err = RunVirtual(t.Context(), c, rows[0], Random(fatTree, seed), load); err != nil || reports == 0 {
			t.Fatalf("seed %d: %d reports, %v", seed, reports, err)
		}
	}
	r := results[0]
	if !reflect.DeepEqual(r, results[1]) {
		t.Errorf("seed %d: two results:\n%+v\n%+v", seed, r, results[1])
	}
	if len(r.Mbit) != 16 || len(r.RTTMicros) < 16*5 || r.Elapsed != 500*time.Millisecond || r.IdlePercent != -1 {
		t.Errorf("result %+v", r)
	}
	for _, m := range r.Mbit {
		if m <= 0 || m > 4 {
			t.Errorf("a host has %v Mbit/s over a link of 4", m)
		}
	}
	most := uint64(4e6/8*0.5) + simnet.DefaultQueueBytes // a port counts what it takes into its queue
	for i, l := range r.Counters.Links {
		if l.Up == 0 || l.Down == 0 || l.Up > most || l.Down > most {
			t.Errorf("link %d carried %+v, at most %d", i, l, most)
		}
	}
}

func TestRunVirtual_endsWithItsContext(t *testing.T) {
	fatTree, _ := topology.FatTree(4)
	rows, _ := testbed.Select([]string{"ecmp"})
	ctx, cancel := context.WithCancel(t.Context())
	load := Load{Duration: 1000 * time.Hour, Progress: func(elapsed, _ time.Duration) {
		if elapsed > 100*time.Millisecond {
			cancel()
		}
	}}
	if _, err := RunVirtual(ctx, testbed.Config{Topology: fatTree, RateMbit: 4}, rows[0], Random(fatTree, 1), load); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Two ports at one rate, of which one is read 90 ms late when the run ends: 6 % of a run
// of 1.5 s. They carried the same.
func TestResult_portsReadAtOtherMoments(t *testing.T) {
	begin := time.Unix(100, 0)
	read := func(after time.Duration, late time.Duration) reading {
		port := func(at time.Duration) testbed.LinkBytes {
			bytes := uint64(1e6 + at.Microseconds()) // one byte a microsecond
			return testbed.LinkBytes{Up: bytes, Down: 2 * bytes, UpAt: begin.Add(at), DownAt: begin.Add(at)}
		}
		return reading{at: begin.Add(after), counters: testbed.Counters{Links: []testbed.LinkBytes{port(after), port(after + late)}}}
	}
	r := (&runner{}).result(read(0, 2*time.Millisecond), read(1500*time.Millisecond, 92*time.Millisecond))
	for i, l := range r.Counters.Links {
		if l.Up != 1_500_000 || l.Down != 3_000_000 {
			t.Errorf("port %d: %d bytes up, %d down in %v, want 1500000 and 3000000", i, l.Up, l.Down, r.Elapsed)
		}
	}
}
