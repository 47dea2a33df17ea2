package papers

import (
	"fmt"

	"weft/bench/sim"
)

// Mutant is what an experiment must tell from the paper's: the same runs with a policy or
// a mechanism replaced by one that does nothing for the paper's claim. A verdict that a
// mutant gets as well is no evidence for what was replaced.
type Mutant struct {
	Name string // what replaces what: "DRB chooses at random"
	// About are words: a row whose label has one of them speaks of what is replaced. Only
	// such a row can tell the mutant.
	About []string
	// Replace names policies, and rules and schedulers of experiments without packets, by
	// what stands for them.
	Replace map[string]string
	// Tune changes the configuration of every simulation; nil: not. What it points to is
	// shared with other runs and must be copied.
	Tune func(*sim.Config)
}

// Trial is a mutant beside the experiment itself.
type Trial struct {
	Experiment string `json:"experiment"`
	Mutant     string `json:"mutant"`
	// Caught says that the experiment tells the mutant from the paper's: the experiment
	// itself does not disagree, the mutant does not pass, and a row about what is replaced
	// tells it.
	Caught bool `json:"caught"`
	// Passes says that the mutant agrees or is in order, or might be with more seeds where
	// the experiment itself is no further: its verdict is no evidence. Where the mutant is
	// neither caught nor passes, the experiment says nothing about it.
	Passes bool   `json:"passes"`
	Quick  bool   `json:"quick"`
	Seed   uint64 `json:"seed"`
	Seeds  int    `json:"seeds"`
	// Identity is that of the experiment itself, see Experiment.Identity; "": not known.
	Identity string  `json:"identity,omitempty"`
	Verdict  Verdict `json:"verdict"` // the mutant's
	Itself   Verdict `json:"itself"`  // the experiment's own
	Told     int     `json:"told"`    // number of rows that tell it
	// By are the first of these rows. A row tells a mutant if it holds for the experiment
	// itself and not for the mutant, or is decided for the one and not for the other.
	By []string `json:"by"`
	// Machines are those that gave the parts of both, as far as they say.
	Machines []string `json:"-"`
}

// shownRows is how many rows of a Trial are named.
const shownRows = 3

// WithMutants are experiments, each with its mutants behind it. An experiment without
// mutants is an error: nothing says what it is evidence for.
func WithMutants(list []Experiment) (subjects []Subject, err error) {
	for _, e := range list {
		if len(e.Mutants) == 0 {
			return nil, fmt.Errorf("%s: has no mutant: name a policy or a mechanism without which it must not pass", e.Name)
		}
		subjects = append(subjects, Subject{Experiment: e})
		for _, m := range e.Mutants {
			if len(m.About) == 0 {
				return nil, fmt.Errorf("%s: mutant %q: About is empty: say which rows speak of what it replaces", e.Name, m.Name)
			}
			subjects = append(subjects, Subject{e, &Variant{Name: m.Name, About: m.About, Replace: m.Replace, Tune: m.Tune}})
		}
	}
	return subjects, nil
}

// Trials are those of subjects that have mutants behind each experiment, by the report of
// each. A mutant whose report is nil, or that of its experiment, has none.
func Trials(subjects []Subject, o Options, reports []*Report) (trials []Trial) {
	compare(subjects, reports, func(m *Variant, itself, mutant *Report) {
		trials = append(trials, trialOf(m, itself, mutant, o))
	})
	return trials
}

func trialOf(m *Variant, itself, mutant *Report, o Options) Trial {
	t := Trial{
		Experiment: itself.Experiment, Mutant: m.Name, Quick: o.Quick, Seed: o.Seed, Seeds: o.seeds(), Identity: itself.Identity,
		Verdict: mutant.Verdict, Itself: itself.Verdict, By: []string{}, Machines: Machines(itself, mutant),
	}
	for _, r := range itself.Rows {
		other, found := mutant.twin(r)
		if found && r.Kind != KindInfo && m.concerns(r) && r.tells(other) {
			if t.Told++; t.Told <= shownRows {
				t.By = append(t.By, r.Label+", "+r.Metric)
			}
		}
	}
	t.Passes = passes(mutant.Verdict) || mutant.Verdict == Undecided && !passes(itself.Verdict)
	t.Caught = t.Told > 0 && !t.Passes && itself.Verdict != Disagrees
	return t
}

// passes reports whether a verdict is one that a paper's claim would get.
func passes(v Verdict) bool { return v == Agrees || v == AgreesOrder }

// tells reports whether a row tells itself from the mutant's.
func (r Row) tells(mutants Row) bool {
	return r.OK && !mutants.OK || r.Decided() && !mutants.Decided()
}
