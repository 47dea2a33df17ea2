package papers

import (
	"context"
	"fmt"

	"weft/bench/sim"
	"weft/policy"
)

// Mutant is what an experiment must tell from the paper's: the same runs with a policy or
// a mechanism replaced by one that does nothing for the paper's claim. A verdict that a
// mutant gets as well is no evidence for what was replaced.
type Mutant struct {
	Name string // what replaces what: "DRB chooses at random"
	// Replace names policies, and rules and schedulers of experiments without packets, by
	// what stands for them.
	Replace map[string]string
	// Tune changes the configuration of every simulation; nil: not. What it points to is
	// shared with other runs and must be copied.
	Tune func(*sim.Config)
}

// As returns what stands for a policy or a scheduler: what replaces it, or itself.
func (o Options) As(name string) string {
	if o.Mutant != nil {
		if other, ok := o.Mutant.Replace[name]; ok {
			return other
		}
	}
	return name
}

// mutated is the configuration of a run, as the mutant has it. The options of a policy
// that is replaced are not the other one's.
func (o Options) mutated(c sim.Config) sim.Config {
	if name := o.As(c.Policy); name != c.Policy {
		c.Policy, c.Options, c.Spray = name, policy.Options{}, sim.SprayOptions{}
	}
	if o.Mutant != nil && o.Mutant.Tune != nil {
		o.Mutant.Tune(&c)
	}
	return c
}

// Trial is a mutant beside the experiment itself.
type Trial struct {
	Experiment string `json:"experiment"`
	Mutant     string `json:"mutant"`
	// Caught says that the experiment tells the mutant from the paper's: the mutant
	// neither agrees nor is in order, and fails a row that the experiment itself passes.
	Caught bool `json:"caught"`
	// Passes says that the mutant agrees or is in order, or might be with more seeds: the
	// experiment's verdict is no evidence. Where it is neither caught nor passes, the
	// experiment itself disagrees in this form, and so says nothing about the mutant.
	Passes  bool    `json:"passes"`
	Quick   bool    `json:"quick"`
	Seed    uint64  `json:"seed"`
	Seeds   int     `json:"seeds"`
	Verdict Verdict `json:"verdict"` // the mutant's
	Itself  Verdict `json:"itself"`  // the experiment's own
	Told    int     `json:"told"`    // number of rows that tell it
	// By are the first of these rows.
	By []string `json:"by"`
}

// shownRows is how many rows of a Trial are named.
const shownRows = 3

// TryMutants runs an experiment and its mutants, and says which are caught. An experiment
// without mutants is an error: nothing says what it is evidence for.
func TryMutants(ctx context.Context, e Experiment, o Options) ([]Trial, error) {
	if len(e.Mutants) == 0 {
		return nil, fmt.Errorf("%s: has no mutant: name a policy or a mechanism without which it must not pass", e.Name)
	}
	o.Mutant = nil
	itself, err := Run(ctx, e, o)
	if err != nil {
		return nil, err
	}
	var trials []Trial
	for i := range e.Mutants {
		o.Mutant = &e.Mutants[i]
		r, err := Run(ctx, e, o)
		if err != nil {
			return trials, fmt.Errorf("mutant %q: %w", e.Mutants[i].Name, err)
		}
		trials = append(trials, trialOf(itself, r, e.Mutants[i].Name, o))
	}
	return trials, nil
}

func trialOf(itself, mutant *Report, name string, o Options) Trial {
	t := Trial{
		Experiment: itself.Experiment, Mutant: name, Quick: o.Quick, Seed: o.Seed, Seeds: max(o.Seeds, 1),
		Verdict: mutant.Verdict, Itself: itself.Verdict, By: []string{},
	}
	fails := make(map[[2]string]bool)
	for _, r := range mutant.Rows {
		fails[[2]string{r.Label, r.Metric}] = !r.OK
	}
	for _, r := range itself.Rows {
		if r.OK && r.Kind != KindInfo && fails[[2]string{r.Label, r.Metric}] {
			if t.Told++; t.Told <= shownRows {
				t.By = append(t.By, r.Label+", "+r.Metric)
			}
		}
	}
	t.Passes = mutant.Verdict != Disagrees
	t.Caught = t.Told > 0 && !t.Passes
	return t
}
