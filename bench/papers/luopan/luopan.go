// Package luopan has the experiments of P. Wang et al., "Luopan: Sampling-Based
// Load Balancing in Data Center Networks", IEEE TPDS 30(1), 2019.
package luopan

import (
	"slices"

	"weft/bench/papers"
)

// Experiments returns them in the order of the paper's figures.
func Experiments() []papers.Experiment {
	all := slices.Clone(experiments())
	for i := range all {
		all[i].Mutants = append(all[i].Mutants, atRandom)
		all[i].Decisions = append(all[i].Decisions, decisions()...)
	}
	return all
}

// atRandom is luopan that looks at no path.
var atRandom = papers.Mutant{Name: "luopan chooses at random", About: []string{"luopan", "samples"}, Replace: map[string]string{luopanScheme: random}}

func experiments() []papers.Experiment {
	return []papers.Experiment{
		ideal(),
		overall("luopan-f9", "Luopan §4.2, Fig. 9", "web search", webSearch, overallClaims{
			mice: bounds{-35, -8}, miceRandom: -24, medium: -25, elephants: -30}),
		overall("luopan-f10", "Luopan §4.2, Fig. 10", "cache", cache, overallClaims{
			mice: bounds{-35, -10}, miceRandom: -20, medium: -13}),
		expiry(),
		samples(),
		scale(),
		oversubscription(),
		buffers(),
		dctcp(),
		incast(),
		nonUniform(),
		failedLinks(),
		leafSpine(),
	}
}
