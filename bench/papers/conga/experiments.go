// Package conga repeats the experiments of CONGA (SIGCOMM 2014).
package conga

import "weft/bench/papers"

// Experiments returns them in the paper's order.
func Experiments() []papers.Experiment {
	all := []papers.Experiment{f9(), f10(), f11(), f12(), f13(), f14(), f15(), f16()}
	for i := range all {
		if all[i].Mutants == nil {
			all[i].Mutants = []papers.Mutant{hashing, blind}
		}
	}
	return all
}

// hashing is CONGA without flowlets and without feedback, blind is one with flowlets alone,
// which take random ports. Both are CONGA-Flow's, too.
var (
	hashing = papers.Mutant{Name: "CONGA hashes flows", About: []string{"CONGA"}, Replace: map[string]string{conga: ecmp}}
	blind   = papers.Mutant{Name: "CONGA has no feedback: flowlets take random paths", About: []string{"CONGA"}, Replace: map[string]string{conga: "switch-letflow"}}
)
