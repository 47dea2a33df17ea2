package results

import (
	"slices"

	"weft/bench/papers"
)

// MutantsFile is the file of mutants.
const MutantsFile = "mutants.json"

// Trial is what a mutant gave.
type Trial struct {
	papers.Trial
	Head
}

func (t Trial) origin() origin { return origin{"mutants", t.Experiment, t.Quick, t.Seeds} }

// Trials are what is kept of trials. Machines of their parts take the place of the head's.
// Those of the full form with too few seeds are an error.
func Trials(of []papers.Trial, h Head) (trials []Trial, err error) {
	for _, t := range of {
		fewest := papers.EnoughSeeds
		if t.Quick {
			fewest = 0
		}
		if err := h.check(t.Experiment, t.Seeds, fewest); err != nil {
			return nil, err
		}
		trials = append(trials, Trial{t, h.by(t.Machines)})
	}
	return trials, nil
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

// triedOf are Tried without full trials of another identity than the experiment's run: they
// say nothing of it.
func (r *Results) triedOf(e papers.Experiment) []Trial {
	run := r.Runs[e.Name]
	return slices.DeleteFunc(r.Tried(e.Name), func(t Trial) bool {
		return run != nil && !t.Quick && t.Identity != "" && t.Identity != run.identified(e)
	})
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
// for: of the full form, with the run's seeds, its verdict and its identity, where one is known. Without one for each mutant,
// there are none.
func (r *Results) certifying(e papers.Experiment) (trials []Trial) {
	run := r.Runs[e.Name]
	if run == nil {
		return nil
	}
	same := func(identity string) bool {
		return identity == run.Identity || run.Identity == "" && identity == run.identified(e)
	}
	for _, m := range e.Mutants {
		i := slices.IndexFunc(r.Mutants, func(t Trial) bool {
			return t.Experiment == e.Name && t.Mutant == m.Name && !t.Quick &&
				t.Seed == run.Seed && t.Seeds == run.Seeds && t.Itself == run.Verdict && same(t.Identity)
		})
		if i < 0 {
			return nil
		}
		trials = append(trials, r.Mutants[i])
	}
	return trials
}
