// Package drb repeats the experiments of DRB (CoNEXT 2013).
package drb

import "weft/bench/papers"

const paper = "DRB"

// Experiments returns them in the paper's order.
func Experiments() []papers.Experiment {
	return []papers.Experiment{
		appendixB(), f6FatTree(), f6VL2(), f7(), f9(), oversubscribed(), f10(), f11(), f12(),
	}
}
