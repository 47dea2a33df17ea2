package thesis

import (
	"fmt"

	"weft/bench/papers"
)

// What the thesis does not state, chosen once for all of its experiments.
const (
	payloadPart = 1460.0 / 1514 // of an Ethernet frame that is TCP's payload

	smallC, largeC = 0.5, 1000 // of hedera.AnnealingConfig, stated in §4.2.4
)

// tolerance is that of all figures, in percent.
const tolerance = papers.Stated

// explain says why an outcome of the full size is not within its tolerances, if it is
// not.
func explain(out *papers.Outcome, o papers.Options, why string) {
	if !o.Quick {
		out.Because = why
	}
}

func stated(name, value string) papers.Parameter { return papers.Parameter{Name: name, Value: value} }

func chosen(name, value, why string) papers.Parameter {
	return papers.Parameter{Name: name, Value: value, Chosen: true, Why: why}
}

// valueOf is a number of an experiment, or the one that stands for its name.
func valueOf(o papers.Options, name string, own float64) float64 {
	if as := o.As(name); as != name {
		if _, err := fmt.Sscan(as, &own); err != nil {
			panic(fmt.Sprintf("thesis: %s is replaced by %q, which is no number", name, as))
		}
	}
	return own
}
