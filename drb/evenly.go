package drb

// evenly returns a sequence in which i occurs weights[i] times. Every prefix of length t
// holds t·weights[i]/n of them, rounded up or down. Within that bound it does not repeat
// the same i where it need not. Equal weights give plain round robin.
//
// The sequence consists of as many rounds as the weights' greatest common divisor. At the
// end of each round every i has had exactly its share.
func evenly(weights []int) []int {
	rounds, total := 0, 0
	for _, w := range weights {
		rounds = gcd(rounds, w)
		total += w
	}
	if total == 0 {
		return nil
	}
	s := schedule{n: total / rounds, branches: make([]branch, len(weights))}
	seq := make([]int, 0, total)
	for range rounds {
		for i, w := range weights {
			s.branches[i] = branch{weight: w / rounds}
			s.next(i)
		}
		for t := range s.n {
			pick := s.earliest(t)
			if len(seq) > 0 && pick == seq[len(seq)-1] {
				pick = s.instead(t, pick)
			}
			s.branches[pick].done++
			s.next(pick)
			seq = append(seq, pick)
		}
	}
	return seq
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// schedule is a round of evenly as a problem of unit jobs on one machine: the j-th
// occurrence of i must get a slot from ⌊j·n/w⌋ up to, not including, ⌈(j+1)·n/w⌉. The
// fluid solution shows that a schedule exists, and earliest deadline first finds one
// whenever one exists.
type schedule struct {
	branches []branch
	n        int // jobs in all, and slots
}

type branch struct {
	weight, done int // jobs, and those scheduled
	release, due int // of the next job; release is n if there is none
}

// next works out when the next job of a branch may run.
func (s *schedule) next(i int) {
	b := &s.branches[i]
	b.release, b.due = b.done*s.n/b.weight, s.deadline(b, b.done+1)
}

// deadline returns the slot before which the j-th job of a branch, from 1 on,
// must be done.
func (s *schedule) deadline(b *branch, j int) int {
	return (j*s.n + b.weight - 1) / b.weight
}

// earliest returns the branch with the earliest deadline among those that are
// ready at slot t.
func (s *schedule) earliest(t int) int {
	pick, first := -1, 0
	for i := range s.branches {
		if b := &s.branches[i]; b.release <= t && (pick < 0 || b.due < first) {
			pick, first = i, b.due
		}
	}
	return pick
}

// instead returns another branch than but for slot t that leaves the rest
// solvable, or else but.
func (s *schedule) instead(t, but int) int {
	for i := range s.branches {
		b := &s.branches[i]
		if i == but || b.release > t {
			continue
		}
		b.done++
		ok := s.solvable(t + 1)
		b.done--
		if ok {
			return i
		}
	}
	return but
}

// solvable reports whether all jobs left fit into the slots from t on. They do if before
// each deadline there is room for the jobs that are due by then (Hall's theorem; slots
// that begin later than t have the room that the fluid solution left them). Only
// deadlines up to that of a job already done can fail: beyond it, no branch is ahead of
// its share, and all shares together fit.
func (s *schedule) solvable(t int) bool {
	ahead := t
	for i := range s.branches {
		if b := &s.branches[i]; b.done > 0 {
			ahead = max(ahead, s.deadline(b, b.done))
		}
	}
	for d := t; d < ahead; d++ {
		due := 0
		for i := range s.branches {
			b := &s.branches[i]
			due += max(0, d*b.weight/s.n-b.done)
		}
		if due > d-t {
			return false
		}
	}
	return true
}
