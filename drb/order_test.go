package drb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func product(bases []int) int {
	n := 1
	for _, b := range bases {
		n *= b
	}
	return n
}

// reversed is DRB §3.1.2 read aloud: write r with the bases reversed, digit by
// digit; turn the digits round; read the path.
func reversed(r int, bases []int) int {
	digits := make([]int, len(bases)) // of the path, most significant first
	for i, base := range bases {
		digits[i] = r % base // r's least significant is the path's most
		r /= base
	}
	path, weight := 0, 1
	for i := len(bases) - 1; i >= 0; i-- {
		path += digits[i] * weight
		weight *= bases[i]
	}
	return path
}

func TestReverse_workedExamples(t *testing.T) {
	for _, c := range []struct {
		bases, want []int
	}{
		{[]int{2, 2}, []int{0, 2, 1, 3}}, // DRB §3.1.2: 3.0 3.2 3.1 3.3
		{[]int{3, 3}, []int{0, 3, 6, 1, 4, 7, 2, 5, 8}},
		{[]int{12, 12}, []int{0, 12, 24, 36, 48, 60, 72, 84, 96, 108, 120, 132, 1, 13}}, // k=24
		{[]int{2, 2, 2}, []int{0, 4, 2, 6, 1, 5, 3, 7}},
		{[]int{2, 3}, []int{0, 3, 1, 4, 2, 5}},
		{[]int{3, 2}, []int{0, 2, 4, 1, 3, 5}},
		{[]int{5}, []int{0, 1, 2, 3, 4}},
	} {
		for r, want := range c.want {
			if got := reverse(r, c.bases); got != want {
				t.Errorf("Reverse(%d, %v) = %d, want %d", r, c.bases, got, want)
			}
		}
	}
	if got := reverse(143, []int{12, 12}); got != 143 {
		t.Errorf("k=24: the last is %d", got)
	}
}

var manyBases = [][]int{
	{1}, {7}, {1, 1}, {2, 3}, {3, 2}, {4, 4, 4}, {2, 3, 5}, {5, 3, 2}, {1, 4, 2}, {4, 1, 2}, {3, 3, 1}, {2, 2, 2, 2}, {2, 7, 3, 2},
}

func TestReverse_isABijectionAndMatchesObviousOne(t *testing.T) {
	all := slices.Clone(manyBases)
	for h := 1; h <= 32; h++ {
		all = append(all, []int{h, h})
	}
	for _, bases := range all {
		n := product(bases)
		seen := make([]bool, n)
		for r := range n {
			p := reverse(r, bases)
			if p < 0 || p >= n || seen[p] || p != reversed(r, bases) {
				t.Fatalf("Reverse(%d, %v) = %d: outside, twice, or not %d", r, bases, p, reversed(r, bases))
			}
			seen[p] = true
			if again := reverse(r+3*n, bases); again != p {
				t.Fatalf("Reverse(%d, %v) = %d, one cycle earlier %d", r+3*n, bases, again, p)
			}
		}
	}
}

func TestInterleave_allLiveIsReverse(t *testing.T) {
	all := slices.Clone(manyBases)
	for k := 2; k <= 24; k += 2 {
		all = append(all, []int{k / 2, k / 2})
	}
	for _, bases := range all {
		n := product(bases)
		var want []int
		for r := range n {
			want = append(want, reverse(r, bases))
		}
		if got := interleave(bases, upTo(n)); !slices.Equal(got, want) {
			t.Errorf("Interleave(%v, all) = %v, want %v", bases, got, want)
		}
	}
}

func TestInterleave_fewPaths(t *testing.T) {
	if got := interleave([]int{2, 2}, nil); len(got) != 0 {
		t.Errorf("no path: %v", got)
	}
	if got := interleave([]int{2, 2}, []int{3}); !slices.Equal(got, []int{3}) {
		t.Errorf("one path: %v", got)
	}
	// The switch with both its paths gets two visits of three, and takes its
	// paths in turn.
	if got := interleave([]int{2, 2}, []int{0, 1, 2}); !slices.Equal(got, []int{0, 2, 1}) {
		t.Errorf("three of four: %v, want 0 2 1", got)
	}
	if got := interleave([]int{3, 2}, []int{0, 1, 2, 4, 5}); !slices.Equal(got, []int{0, 4, 1, 2, 5}) {
		t.Errorf("five of six: %v, want 0 4 1 2 5", got)
	}
	live := []int{0, 1, 3}
	order := interleave([]int{2, 2}, live)
	order[0] = 99
	if !slices.Equal(live, []int{0, 1, 3}) {
		t.Error("Interleave shares its argument")
	}
}

// DRB Theorem 2, for every fat-tree up to k=16 and over several cycles.
func TestReverse_theorem2(t *testing.T) {
	for k := 2; k <= 16; k += 2 {
		h := k / 2
		first, second := map[int]int{}, map[int]int{}
		lastUplink := -1
		for r := range 4 * h * h {
			path := reverse(r, []int{h, h})
			uplink := path / h // of the edge switch; a path names one link further up
			if at, ok := first[uplink]; ok && r-at != h {
				t.Fatalf("k=%d: first-layer uplink %d at steps %d and %d, want %d apart", k, uplink, at, r, h)
			}
			if at, ok := second[path]; ok && r-at != h*h {
				t.Fatalf("k=%d: second-layer uplink %d at steps %d and %d, want %d apart", k, path, at, r, h*h)
			}
			if k >= 4 && uplink == lastUplink {
				t.Fatalf("k=%d: steps %d and %d share uplink %d", k, r-1, r, uplink)
			}
			first[uplink], second[path], lastUplink = r, r, uplink
		}
		if len(first) != h || len(second) != h*h {
			t.Fatalf("k=%d: %d and %d uplinks visited", k, len(first), len(second))
		}
	}
}

// Whatever is dead, each live path has its turn once, and at every switch every
// prefix of the packets that come by has given each branch its share, rounded
// up or down.
func TestInterleave_sharesEvenlyWithPathsDead(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	all := slices.Clone(manyBases)
	all = append(all, []int{2, 2}, []int{3, 3}, []int{4, 4}, []int{8, 8}, []int{12, 12})
	for _, bases := range all {
		for range 60 {
			var live []int
			keep := rng.Float64()
			for p := range product(bases) {
				if rng.Float64() < keep {
					live = append(live, p)
				}
			}
			order := interleave(bases, live)
			sorted := slices.Clone(order)
			slices.Sort(sorted)
			if !slices.Equal(sorted, live) {
				t.Fatalf("seed %d: Interleave(%v, %v) = %v", seed, bases, live, order)
			}
			if err := shared(order, bases); err != nil {
				t.Fatalf("seed %d: Interleave(%v, %v) = %v: %v", seed, bases, live, order, err)
			}
		}
	}
}

// shared checks one switch and, with the visits that each branch gets, the
// switches above.
func shared(visits, bases []int) error {
	if len(bases) == 0 || len(visits) == 0 {
		return nil
	}
	below := product(bases[1:])
	weight := make([]int, bases[0])
	for _, v := range visits {
		weight[v/below]++
	}
	branch := make([][]int, bases[0])
	for t, v := range visits {
		i := v / below
		branch[i] = append(branch[i], v%below)
		for i, w := range weight {
			floor := (t + 1) * w / len(visits)
			ceil := ((t+1)*w + len(visits) - 1) / len(visits)
			if got := len(branch[i]); got < floor || got > ceil {
				return fmt.Errorf("bases %v: after %d of %d visits branch %d had %d, want %d or %d",
					bases, t+1, len(visits), i, got, floor, ceil)
			}
		}
	}
	for _, sub := range branch {
		if err := shared(sub, bases[1:]); err != nil {
			return err
		}
	}
	return nil
}

// reverse is DRB's DR(r) in any mixed radix system: it writes the counter r
// with the bases in reverse and returns the path whose digits are r's,
// reversed, so that the choice at the lowest layer changes with every step.
// r is taken modulo the number of paths.
func reverse(r int, bases []int) int {
	path := 0
	for _, base := range bases {
		path = path*base + r%base
		r /= base
	}
	return path
}
