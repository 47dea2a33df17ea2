package backlog

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// oracle goes by all that was ever sent, and sorts.
type oracle struct {
	config  Config
	leak    float64
	backlog map[int]float64
	now     time.Duration
	memory  map[uint32][]int
	paths   int
}

func (o *oracle) until(now time.Duration) {
	for p := range o.backlog {
		o.backlog[p] = max(0, o.backlog[p]-o.leak*float64(now-o.now))
	}
	o.now = now
}

func (o *oracle) share(paths int) {
	if paths > o.paths {
		o.paths = paths
		o.leak = o.config.RateBits / 8 / 1e9 / float64(paths)
	}
}

// choose is told the samples, in the order in which they were picked.
func (o *oracle) choose(dst uint32, paths, samples []int) int {
	candidates := slices.Clone(samples)
	for _, p := range o.memory[dst] {
		if slices.Contains(paths, p) {
			candidates = append(candidates, p)
		}
	}
	slices.SortStableFunc(candidates, func(a, b int) int {
		// Rounding must not decide.
		if d := o.backlog[a] - o.backlog[b]; math.Abs(d) > 1e-3 {
			return int(math.Copysign(1, d))
		}
		return 0
	})
	var least []int
	for _, p := range candidates {
		if !slices.Contains(least, p) && len(least) < o.config.Memory {
			least = append(least, p)
		}
	}
	o.memory[dst] = least
	return least[0]
}

func TestTable_isTheOracle(t *testing.T) {
	for seed := range uint64(8) {
		c := Config{Samples: 1 + int(seed%4), Memory: 1 + int(seed/3%4), RateBits: 8e9, Seed: seed}
		table := newTable(t, c)
		o := &oracle{config: c, backlog: map[int]float64{}, memory: map[uint32][]int{}}
		o.share(1)
		twin := *newTable(t, c) // its chance is the table's
		rng := rand.New(rand.NewPCG(seed, 1))
		now := time.Duration(0)
		moved := 0
		for i := range 10_000 {
			if i/1000%5 == 4 { // overload
				now += time.Duration(rng.IntN(200))
			} else {
				now += time.Duration(rng.IntN(2000))
			}
			o.until(now)
			dst := rng.Uint32N(5)
			var paths []int
			for p := range 1 + rng.IntN(16) {
				if rng.IntN(4) > 0 || p == 0 {
					paths = append(paths, p)
				}
			}
			o.share(paths[len(paths)-1] + 1)
			var at, samples []int
			for range min(c.Samples, len(paths)) {
				at = append(at, twin.pick(len(paths), at))
				samples = append(samples, paths[at[len(at)-1]])
			}
			got, want := table.Choose(dst, paths, now), o.choose(dst, paths, samples)
			if got != want {
				t.Fatalf("seed %d, step %d: path %d (%v left), want %d (%v), of %v, samples %v",
					seed, i, got, table.buckets.left(got, now), want, o.backlog[want], paths, samples)
			}
			if got != samples[0] {
				moved++
			}
			bytes := 60 + rng.IntN(1400)
			table.Sent(dst, got, bytes, now)
			o.backlog[got] = min(o.backlog[got]+float64(bytes), deepest)
		}
		if moved < 500 {
			t.Errorf("seed %d: %d choices were not the first sample", seed, moved)
		}
	}
}

// pick is uniform and never picks twice.
func TestPick(t *testing.T) {
	table := newTable(t, Config{Seed: 5})
	var n [6][6]int
	for range 30_000 {
		a := table.pick(6, nil)
		b := table.pick(6, []int{a})
		n[a][b]++
	}
	for a := range n {
		for b, x := range n[a] {
			if a == b && x != 0 || a != b && (x < 850 || x > 1150) {
				t.Errorf("%d, %d is picked %d times, of 1000", a, b, x)
			}
		}
	}
}

// One more choice, and some memory, even out what packets of unequal size leave
// behind, against random choice (DRILL §3.2.3, Fig. 2): the spread of backlogs
// is at most half. More of both gains little.
func TestTable_evensOutBacklogs(t *testing.T) {
	const seed, load = 1, 0.8
	spread := func(samples, memory int) float64 {
		table := newTable(t, Config{Samples: max(samples, 1), Memory: max(memory, 1), RateBits: 8e9, Seed: seed})
		rng := rand.New(rand.NewPCG(seed, 2))
		paths := make([]int, 16)
		for p := range paths {
			paths[p] = p
		}
		now, sum := time.Duration(0), 0.
		const rounds = 20_000
		for range rounds {
			bytes := 60
			if rng.IntN(2) == 0 {
				bytes = 1500
			}
			now += time.Duration(rng.ExpFloat64() * float64(bytes) / load)
			p := paths[rng.IntN(len(paths))]
			if samples > 0 {
				p = table.Choose(rack, paths, now)
			} else {
				table.buckets.share(15, now)
			}
			table.Sent(rack, p, bytes, now)
			var mean, squares float64
			for p := range paths {
				x := table.buckets.left(p, now)
				mean += x / 16
				squares += x * x / 16
			}
			sum += math.Sqrt(max(0, squares-mean*mean)) / rounds
		}
		return sum
	}
	random := spread(0, 0)
	one, two, three, all := spread(1, 1), spread(2, 1), spread(3, 2), spread(16, 1)
	t.Logf("standard deviation in bytes: random %.0f, DRILL(1,1) %.0f, (2,1) %.0f, (3,2) %.0f, (16,1) %.0f", random, one, two, three, all)
	if two > random/2 || one > random || two > one*1.05 || all > two*1.05 {
		t.Error("choices or memory do not help as they should")
	}
}
