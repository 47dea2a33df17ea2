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
// prefix of length t holds t·weights[i]/n of them, rounded up or down.
//
// The j-th occurrence of i must fall into [⌊j·n/w⌋, ⌈(j+1)·n/w⌉); the fluid
// schedule shows that this is feasible, and earliest deadline first finds a
// schedule of unit jobs whenever there is one. Equal weights give plain round
// robin.
func evenly(weights []int) []int {
	n := 0
	for _, w := range weights {
		n += w
	}
	seq := make([]int, 0, n)
	done := make([]int, len(weights))
	for t := range n {
		best, bestDeadline := -1, 0
		for i, w := range weights {
			j := done[i]
			if j == w || j*n/w > t {
				continue
			}
			deadline := ((j+1)*n + w - 1) / w
			if best < 0 || deadline < bestDeadline {
				best, bestDeadline = i, deadline
			}
		}
		seq = append(seq, best)
		done[best]++
	}
	return seq
}
