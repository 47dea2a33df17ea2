package results

import (
	"fmt"
	"slices"
	"strings"

	"weft/bench/papers"
)

// MutantsFile is the file of mutants.
const MutantsFile = "mutants.json"

// Trial is what a mutant gave.
type Trial struct {
	papers.Trial
	Head
}

// Trials are what is kept of trials. Machines of their parts take the place of the head's.
// Those of the full form with too few seeds are an error.
func Trials(of []papers.Trial, h Head) (trials []Trial, err error) {
	for _, t := range of {
		if err := h.check(t.Experiment, t.Quick, t.Seeds); err != nil {
			return nil, err
		}
		trials = append(trials, Trial{t, h.by(t.Machines)})
	}
	return trials, nil
}

// Merge replaces trials of the same experiments in the same form, and keeps the rest. It is
// an error to replace one by a trial with fewer seeds.
func Merge(old, news []Trial) ([]Trial, error) {
	all := slices.Clone(news)
	for _, t := range old {
		i := slices.IndexFunc(news, func(n Trial) bool { return n.Experiment == t.Experiment && n.Quick == t.Quick })
		if i < 0 {
			all = append(all, t)
		} else if n := news[i].Seeds; n < t.Seeds {
			return nil, fmt.Errorf("%s: mutants of --seeds=%d cannot replace those of %d: try them with as many", t.Experiment, n, t.Seeds)
		}
	}
	slices.SortStableFunc(all, func(a, b Trial) int { return strings.Compare(a.Experiment, b.Experiment) })
	return all, nil
}

// MutantsJSON has a line for each trial.
func MutantsJSON(all []Trial) ([]byte, error) {
	b, err := lines(all)
	return append(b, '\n'), err
}

// Tried are an experiment's trials: the full ones if there are any, else the quick ones.
func (r *Results) Tried(experiment string) (trials []Trial) {
	for _, quick := range []bool{false, true} {
		for _, t := range r.Mutants {
			if t.Experiment == experiment && t.Quick == quick {
				trials = append(trials, t)
			}
		}
		if len(trials) > 0 {
			break
		}
	}
	return trials
}

// Passing are the mutants of an experiment that are known to pass.
func (r *Results) Passing(experiment string) (names []string) {
	for _, t := range r.Tried(experiment) {
		if t.Passes {
			names = append(names, t.Mutant)
		}
	}
	return names
}

// certifying are the trials of an experiment's mutants that say what its run is evidence
// for: of the full form, with the run's seeds and its verdict. Without one for each mutant,
// there are none.
func (r *Results) certifying(e papers.Experiment) (trials []Trial) {
	run := r.Runs[e.Name]
	if run == nil {
		return nil
	}
	for _, m := range e.Mutants {
		i := slices.IndexFunc(r.Mutants, func(t Trial) bool {
			return t.Experiment == e.Name && t.Mutant == m.Name && !t.Quick &&
				t.Seed == run.Seed && t.Seeds == run.Seeds && t.Itself == run.Verdict
		})
		if i < 0 {
			return nil
		}
		trials = append(trials, r.Mutants[i])
	}
	return trials
}
