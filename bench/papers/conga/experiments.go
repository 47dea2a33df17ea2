// Package conga repeats the experiments of CONGA (SIGCOMM 2014).
package conga

import "weft/bench/papers"

// Experiments returns them in the paper's order.
func Experiments() []papers.Experiment {
	return []papers.Experiment{f9(), f10(), f11(), f12(), f15(), f16()}
}
