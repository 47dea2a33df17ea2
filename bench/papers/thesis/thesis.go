// Package thesis repeats the experiments of Al-Fares' thesis: tables of costs as far as they
// are arithmetic (chapter 2), those of fat-trees (chapter 3), of Hedera (chapter 4) and of
// queue management in bumps (chapter 5).
package thesis

import "weft/bench/papers"

// Experiments returns them in the thesis' order.
func Experiments() []papers.Experiment {
	return []papers.Experiment{
		table21(), table22(), table31(), table32(), greedy(),
		table42(), table43(), table44(), table45(), table46(), table47(), large(),
		figure510(), figure511(), figure512(), figure514(), figure515(), figure516(), figure517(),
	}
}
