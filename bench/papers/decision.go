package papers

import (
	"errors"
	"fmt"
	"slices"

	"weft/bench/sim"
)

// Decision runs an experiment again with other values of one parameter that the paper
// leaves open, to decide what rows that are out depend on: a row that is OK with one of
// them depends on the parameter, and one that is OK with none of all plausible ones does
// not.
type Decision struct {
	Parameter string // "buffer of each port"
	// About are words of the labels of rows that it speaks of, as Mutant.About.
	About []string
	// Ends says why no other value is plausible; empty: the values do not span all that is.
	// Fitted ones span nothing.
	Ends string
	// Nearest says why no value can bring a figure nearer to the paper's than the experiment
	// itself has it; empty: some value must do so, or the decision makes no row immovable.
	Nearest string
	// Discrete says that nothing lies between two values. Else a row whose paper's figure is
	// between those with two values is still open, since a value between may move it, and so
	// is an order or a claim, which does not say on which side it fails.
	Discrete bool
	// Against quotes the paper's words that all values contradict; empty: they contradict none.
	// Such values are fitted. The paper leaves no choice there, so the decision decides no row
	// and keeps none from being immovable by others. It shows what would give the paper's figure.
	Against string
	Values  []DecisionValue
}

// DecisionValue is a value of a Decision, other than the one that the experiment itself
// has.
type DecisionValue struct {
	Name string // "160 KB"
	// Replace is as in Mutant, and may name anything else that Run asks Options.As of: for a
	// value that no configuration has, such as the number of hosts.
	Replace map[string]string
	// Tune changes the configuration of every simulation, as in Mutant; nil: not.
	Tune func(*sim.Config)
	// Fitted says that it was chosen by the paper's own figures or known to give them, is against
	// its words, or was run for another time than the experiment. What only such values move is
	// explained by a fit, and not decided.
	Fitted bool
}

// allFitted reports whether no value of a decision is plausible by itself.
func (d *Decision) allFitted() bool {
	return !slices.ContainsFunc(d.Values, func(v DecisionValue) bool { return !v.Fitted })
}

// check finds what a careless decision has left out.
func (d *Decision) check() error {
	switch {
	case d.Parameter == "":
		return errors.New("a decision has no Parameter: name what the paper leaves open")
	case len(d.About) == 0:
		return fmt.Errorf("decision %q: About is empty: say which rows speak of it", d.Parameter)
	case len(d.Values) == 0:
		return fmt.Errorf("decision %q: has no values: give those to be tried", d.Parameter)
	case d.Ends != "" && d.allFitted():
		return fmt.Errorf("decision %q: all values are fitted, and span nothing: leave Ends empty", d.Parameter)
	case d.Nearest != "" && d.Ends == "":
		return fmt.Errorf("decision %q: Nearest is of values that span all that is plausible: give it Ends", d.Parameter)
	case d.Against != "" && slices.ContainsFunc(d.Values, func(v DecisionValue) bool { return !v.Fitted }):
		return fmt.Errorf("decision %q: what is against the paper's words is no plausible value: make each Fitted", d.Parameter)
	}
	for i, v := range d.Values {
		switch {
		case v.Name == "":
			return fmt.Errorf("decision %q: value %d has no Name", d.Parameter, i+1)
		case len(v.Replace) == 0 && v.Tune == nil:
			return fmt.Errorf("decision %q: value %q changes nothing: give it Replace or Tune", d.Parameter, v.Name)
		case slices.ContainsFunc(d.Values[:i], func(other DecisionValue) bool { return other.Name == v.Name }):
			return fmt.Errorf("decision %q: value %q occurs twice", d.Parameter, v.Name)
		}
	}
	return nil
}

// ErrNoDecision is of experiments of which none has a decision.
var ErrNoDecision = errors.New("none of these experiments has a decision: weft sim list --json shows which have")

// WithDecisions are the experiments that have decisions, each with their values behind it.
// If none has one, that is ErrNoDecision.
func WithDecisions(list []Experiment) (subjects []Subject, err error) {
	for _, e := range list {
		if len(e.Decisions) > 0 {
			subjects = append(subjects, Subject{Experiment: e})
		}
		for i := range e.Decisions {
			d := &e.Decisions[i]
			if err := d.check(); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			if slices.ContainsFunc(e.Decisions[:i], func(other Decision) bool { return other.Parameter == d.Parameter }) {
				return nil, fmt.Errorf("%s: decision %q occurs twice: give one all values", e.Name, d.Parameter)
			}
			for _, v := range d.Values {
				subjects = append(subjects, Subject{e, &Variant{d, v.Name, d.About, v.Replace, v.Tune, v.Fitted}})
			}
		}
	}
	if len(subjects) == 0 {
		return nil, ErrNoDecision
	}
	return subjects, nil
}
