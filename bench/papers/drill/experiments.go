package drill

import "weft/bench/papers"

// Experiments returns them in the paper's order.
func Experiments() []papers.Experiment {
	return []papers.Experiment{
		balance, pitfalls, symmetric, scaledOut, reordering, oneFailure, tenFailures, heterogeneous, incast, synthetic,
	}
}
