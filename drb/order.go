package drb

// Reverse is DRB's DR(r) in any mixed radix system: it writes the counter r
// with the bases in reverse and returns the path whose digits are r's,
// reversed, so that the choice at the lowest layer changes with every step.
// r is taken modulo the number of paths.
func Reverse(r int, bases []int) int {
	path := 0
	for _, base := range bases {
		path = path*base + r%base
		r /= base
	}
	return path
}

// Interleave returns the order in which digit reversal visits the live paths,
// each once. With all paths live that is Reverse(0), Reverse(1), ... With some
// dead it is what digit reversal stands for rather than the same list with
// holes: at every layer each subtree is visited in proportion to its live
// paths and as evenly as whole steps allow. After t visits to a switch with n
// live paths above, a branch with w of them has had its share t·w/n rounded up
// or down.
//
// live holds path numbers, ascending, within the product of bases.
func Interleave(bases, live []int) []int {
	if len(bases) == 0 || len(live) <= 1 {
		return append([]int(nil), live...)
	}
	below := 1
	for _, b := range bases[1:] {
		below *= b
	}
	// One list per live branch at this layer, itself interleaved.
	var branches [][]int
	for from := 0; from < len(live); {
		digit := live[from] / below
		to := from
		sub := []int(nil)
		for to < len(live) && live[to]/below == digit {
			sub = append(sub, live[to]-digit*below)
			to++
		}
		sub = Interleave(bases[1:], sub)
		for i := range sub {
			sub[i] += digit * below
		}
		branches = append(branches, sub)
		from = to
	}
	weights := make([]int, len(branches))
	for i, b := range branches {
		weights[i] = len(b)
	}
	order := make([]int, 0, len(live))
	for _, i := range evenly(weights) {
		order = append(order, branches[i][0])
		branches[i] = branches[i][1:]
	}
	return order
}

// evenly returns a sequence in which i occurs weights[i] times and every
// prefix of length t holds t·weights[i]/n of them, rounded up or down. Within
// that it does not take the same i twice in a row where it need not. Equal
// weights give plain round robin.
func evenly(weights []int) []int {
	s := schedule{weights: weights, done: make([]int, len(weights))}
	for _, w := range weights {
		s.n += w
	}
	seq := make([]int, 0, s.n)
	for t := range s.n {
		pick, _ := s.earliest(t)
		if t > 0 && pick == seq[t-1] {
			if other, ok := s.instead(t, pick); ok {
				pick = other
			}
		}
		s.done[pick]++
		seq = append(seq, pick)
	}
	return seq
}

// schedule is evenly's problem as one of unit jobs on one machine: the j-th
// occurrence of i must fall into the slots from ⌊j·n/w⌋ to before
// ⌈(j+1)·n/w⌉. That there is a solution shows the fluid one; earliest deadline
// first finds a solution whenever there is one.
type schedule struct {
	weights, done []int // of each branch: jobs, and those scheduled
	n             int
}

// earliest returns the branch with the earliest deadline among those that may
// run at slot t; ok is false if there is none or it is too late.
func (s *schedule) earliest(t int) (branch int, ok bool) {
	branch, first := -1, 0
	for i, w := range s.weights {
		j := s.done[i]
		if j == w || j*s.n/w > t {
			continue
		}
		if deadline := ((j+1)*s.n + w - 1) / w; branch < 0 || deadline < first {
			branch, first = i, deadline
		}
	}
	return branch, branch >= 0 && first > t
}

// instead returns another branch than but for slot t that leaves the rest
// solvable, false if there is none.
func (s *schedule) instead(t, but int) (int, bool) {
	for i, w := range s.weights {
		if j := s.done[i]; i == but || j == w || j*s.n/w > t {
			continue
		}
		s.done[i]++
		ok := s.solvable(t + 1)
		s.done[i]--
		if ok {
			return i, true
		}
	}
	return 0, false
}

// solvable reports whether all jobs left fit into the slots from t on.
func (s *schedule) solvable(t int) bool {
	try := schedule{s.weights, append([]int(nil), s.done...), s.n}
	for ; t < s.n; t++ {
		i, ok := try.earliest(t)
		if !ok {
			return false
		}
		try.done[i]++
	}
	return true
}
