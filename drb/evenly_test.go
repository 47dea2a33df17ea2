package drb

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// byTrial is evenly without its shortcuts: it schedules all jobs at once, and
// finds out whether a choice leaves the rest solvable by solving the rest.
type byTrial struct {
	weights, done []int
	n             int
}

func evenlyByTrial(weights []int) (seq []int) {
	s := byTrial{weights: weights, done: make([]int, len(weights))}
	for _, w := range weights {
		s.n += w
	}
	for t := range s.n {
		pick, _ := s.earliest(t)
		if t > 0 && pick == seq[t-1] {
			for i := range weights {
				if i != pick && s.ready(i, t) && s.try(i, t) {
					pick = i
					break
				}
			}
		}
		s.done[pick]++
		seq = append(seq, pick)
	}
	return seq
}

func (s *byTrial) ready(i, t int) bool {
	return s.done[i] < s.weights[i] && s.done[i]*s.n/s.weights[i] <= t
}

func (s *byTrial) earliest(t int) (branch int, ok bool) {
	branch, first := -1, 0
	for i, w := range s.weights {
		if !s.ready(i, t) {
			continue
		}
		if d := ((s.done[i]+1)*s.n + w - 1) / w; branch < 0 || d < first {
			branch, first = i, d
		}
	}
	return branch, branch >= 0 && first > t
}

// try reports whether all goes well when i has slot t.
func (s *byTrial) try(i, t int) bool {
	rest := byTrial{s.weights, slices.Clone(s.done), s.n}
	rest.done[i]++
	for t++; t < s.n; t++ {
		i, ok := rest.earliest(t)
		if !ok {
			return false
		}
		rest.done[i]++
	}
	return true
}

func TestEvenly_matchesTrial(t *testing.T) {
	const seed = 19
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		weights := make([]int, 1+rng.IntN(7))
		common := 1 + rng.IntN(3)
		for i := range weights {
			weights[i] = common * (1 + rng.IntN(9))
		}
		if got, want := evenly(weights), evenlyByTrial(weights); !slices.Equal(got, want) {
			t.Fatalf("seed %d: evenly(%v) = %v, want %v", seed, weights, got, want)
		}
	}
}

// Every small set of weights; that a fair sequence exists at all is found by
// trying all of them.
func TestEvenly_matchesExhaustiveSearch(t *testing.T) {
	for a := range 6 {
		for b := range 6 {
			for c := range 5 {
				w := []int{a, b, c}
				if a+b+c == 0 {
					continue
				}
				if !fairSequenceExists(w, make([]int, 3), 0) {
					t.Fatalf("no fair sequence of %v exists", w)
				}
				var weights []int // evenly is not asked for branches of no path
				for _, x := range w {
					if x > 0 {
						weights = append(weights, x)
					}
				}
				seq := evenly(weights)
				done := make([]int, len(weights))
				for i, x := range seq {
					if done[x]++; !fair(weights, done, i+1) {
						t.Fatalf("evenly(%v) = %v is not fair after %d", weights, seq, i+1)
					}
				}
				if !slices.Equal(done, weights) {
					t.Fatalf("evenly(%v) = %v", weights, seq)
				}
			}
		}
	}
}

func fair(weights, done []int, t int) bool {
	n := 0
	for _, w := range weights {
		n += w
	}
	for i, w := range weights {
		if d := done[i]*n - t*w; d <= -n || d >= n {
			return false
		}
	}
	return true
}

func fairSequenceExists(weights, done []int, t int) bool {
	if slices.Equal(weights, done) {
		return true
	}
	for i := range weights {
		done[i]++
		ok := done[i] <= weights[i] && fair(weights, done, t+1) && fairSequenceExists(weights, done, t+1)
		done[i]--
		if ok {
			return true
		}
	}
	return false
}

func TestEvenly_equalWeightsAreRoundRobin(t *testing.T) {
	if got := evenly([]int{2, 2, 2}); !slices.Equal(got, []int{0, 1, 2, 0, 1, 2}) {
		t.Errorf("%v", got)
	}
}

// Where a fair order without repetition exists, evenly finds one. Exhaustive
// search is the oracle.
func TestEvenly_repeatsOnlyWhereItMust(t *testing.T) {
	avoidable := 0
	weights := []int{1, 1, 1, 1}
	for {
		for m := 2; m <= 4; m++ {
			w := weights[:m]
			seq := evenly(w)
			repeats := false
			for i := 1; i < len(seq); i++ {
				repeats = repeats || seq[i] == seq[i-1]
			}
			if canAlternate(w) {
				avoidable++
				if repeats {
					t.Fatalf("evenly(%v) = %v repeats though it need not", w, seq)
				}
			}
		}
		i := 0
		for ; i < len(weights) && weights[i] == 5; i++ {
			weights[i] = 1
		}
		if i == len(weights) {
			break
		}
		weights[i]++
	}
	if avoidable < 500 {
		t.Fatalf("only %d cases: the test tests nothing", avoidable)
	}
}

// canAlternate searches for a sequence that is fair in every prefix and never
// repeats an element at once.
func canAlternate(weights []int) bool {
	n := 0
	for _, w := range weights {
		n += w
	}
	type state struct {
		done [4]int
		last int
	}
	dead := make(map[state]bool)
	var search func(t int, s state) bool
	search = func(t int, s state) bool {
		if t == n {
			return true
		}
		if dead[s] {
			return false
		}
		for i := range weights {
			if i == s.last {
				continue
			}
			next := s
			next.done[i]++
			next.last = i
			if fair(weights, next.done[:len(weights)], t+1) && search(t+1, next) {
				return true
			}
		}
		dead[s] = true
		return false
	}
	return search(0, state{last: -1})
}
