// Package drb repeats the experiments of DRB (CoNEXT 2013).
package drb

import (
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
)

const paper = "DRB"

// Experiments returns them in the paper's order.
func Experiments() []papers.Experiment {
	return []papers.Experiment{
		appendixB(), f6FatTree(), f6VL2(), f7(), f8(), f9(), oversubscribed(), f10(), f11(), f12(),
	}
}

// atRandom is DRB without its order of paths.
var atRandom = papers.Mutant{Name: "DRB chooses at random", About: []string{"DRB"}, Replace: map[string]string{"drb": "rb"}}

// unordered is every policy without a resequencer.
var unordered = papers.Mutant{Name: "nothing restores order", About: []string{"RB", "resequenc"}, Tune: func(c *sim.Config) { c.Resequencer = nil }}

// untold are hosts that never learn of a failure or a return.
var untold = papers.Mutant{Name: "hosts never learn of failures", About: []string{" off", " back"}, Tune: func(c *sim.Config) {
	c.Failures = slices.Clone(c.Failures)
	for i := range c.Failures {
		c.Failures[i].Told = time.Hour
	}
}}
