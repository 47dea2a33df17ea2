package main

import (
	"slices"

	"weft/bench/papers"
	"weft/bench/papers/conga"
	"weft/bench/papers/drb"
	"weft/bench/papers/drill"
	"weft/bench/papers/luopan"
	"weft/bench/papers/thesis"
)

// experiments are all that weft sim knows, paper by paper.
func experiments() []papers.Experiment {
	return slices.Concat(drb.Experiments(), luopan.Experiments(), drill.Experiments(), conga.Experiments(), thesis.Experiments())
}
