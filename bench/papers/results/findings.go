package results

import (
	"fmt"

	"weft/bench/papers"
)

// DecisionsFile is the file of what decisions found.
const DecisionsFile = "decisions.json"

// Finding is what a value of a decision gave.
type Finding struct {
	papers.Finding
	Head
}

func (f Finding) origin() origin { return origin{"decisions", f.Experiment, f.Quick, f.Seeds} }

// Findings are what is kept of findings. Machines of their parts take the place of the
// head's. Those of the quick form are an error. Few seeds are not: decisions cost much.
func Findings(of []papers.Finding, h Head) (found []Finding, err error) {
	for _, f := range of {
		if f.Quick {
			return nil, fmt.Errorf("%s: a quick run decides nothing that is worth keeping: run it without --quick", f.Experiment)
		}
		if err := h.check(f.Experiment, f.Seeds, 1); err != nil {
			return nil, err
		}
		for _, list := range []*[]papers.Figure{&f.Moved, &f.Unmoved, &f.Broken} {
			*list = rounded(*list)
		}
		found = append(found, Finding{f, h.by(f.Machines)})
	}
	return found, nil
}

func rounded(figures []papers.Figure) []papers.Figure {
	all := make([]papers.Figure, len(figures))
	for i, f := range figures {
		f.Paper, f.Itself, f.Ours = shortened(f.Paper), short(f.Itself), short(f.Ours)
		all[i] = f
	}
	return all
}

// Decided says what rows of a report depend on that are out.
func (r *Results) Decided(e papers.Experiment, report *papers.Report) papers.Decided {
	found := make([]papers.Finding, len(r.Decisions))
	for i, f := range r.Decisions {
		found[i] = f.Finding
	}
	return papers.Decide(e, report, found)
}

// decided is Decided of a stored run.
func (r *Results) decided(e papers.Experiment, run *Run) papers.Decided {
	return r.Decided(e, &papers.Report{Seed: run.Seed, Seeds: run.Seeds, Rows: run.Rows, Identity: run.identified(e)})
}
