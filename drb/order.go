package drb

// interleave returns the order in which digit reversal visits the live paths, each once.
// With all paths live it is the paper's DR(0), DR(1), ... With dead paths it is not the
// same list with holes: at every layer each subtree is visited in proportion to its live
// paths, as evenly as whole steps allow. After t visits to a switch with n live paths
// above, a branch with w of them has had its share t·w/n, rounded up or down.
//
// live holds path numbers, ascending, within the product of bases. A path that weighs
// more than others occurs in it several times, is visited as often, and counts as often
// in its subtree.
func interleave(bases, live []int) []int {
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
		sub = interleave(bases[1:], sub)
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
