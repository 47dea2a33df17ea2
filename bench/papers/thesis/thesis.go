// Package thesis repeats the experiments of Al-Fares' thesis: those of fat-trees (chapter
// 3) and of Hedera (chapter 4).
package thesis

import "weft/bench/papers"

// Experiments returns them in the thesis' order.
func Experiments() []papers.Experiment {
	return []papers.Experiment{
		table31(), greedy(), table43(), table44(), table45(), table46(), large(),
	}
}
