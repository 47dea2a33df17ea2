package papers

// The tolerances, and the test of orders. They were committed before the first run that
// they judge, and are for all experiments alike: no row has a tolerance of its own that
// was chosen after its figure was known. A change of one is a commit of its own, after
// which all experiments run again.
//
// Figures that were judged in order only (drb-f6-fattree, drb-f6-vl2 and drb-f7: delays
// and round trips) and drb-f11's greatest queue of ECMP have Stated.
const (
	// Stated is for a figure that a text or a table of the paper states, in percent, to
	// both sides.
	Stated = 10
	// Plotted is for what the text gives as "up to", "about" or the extreme of a curve
	// that is plotted only, in percent of it, to both sides.
	Plotted = 50
	// Tie is how many percent of the larger one two figures are apart at most for a tie,
	// the paper's figures as ours. A tie of the paper's orders nothing, and a tie of ours
	// is not the paper's order.
	Tie = 1
	// Chance is the probability that an order which holds with half of all seeds, as one
	// of equals would, holds with as many of the seeds that were run: where it is
	// greater, the order is not decided. 5 of 5 seeds, 7 of 8 or 9 of 10 are enough.
	Chance = 0.05
)
