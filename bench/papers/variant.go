package papers

import (
	"fmt"
	"slices"
	"strings"

	"weft/bench/sim"
	"weft/policy"
)

// Variant is what an experiment runs in place of what is its own: a mutant, or a value of a
// decision.
type Variant struct {
	Decision *Decision // that it is a value of; nil: a mutant
	Name     string
	About    []string // as Mutant.About
	Replace  map[string]string
	Tune     func(*sim.Config)
	Fitted   bool // as DecisionValue.Fitted
}

func (v *Variant) String() string {
	if v.Decision == nil {
		return fmt.Sprintf("mutant %q", v.Name)
	}
	return fmt.Sprintf("%s %q", v.Decision.Parameter, v.Name)
}

// concerns reports whether a row speaks of what is other than in the experiment itself.
func (v *Variant) concerns(r Row) bool { return speaks(v.About, r.Label) }

// speaks reports whether a label has one of some words.
func speaks(about []string, label string) bool {
	return slices.ContainsFunc(about, func(word string) bool { return strings.Contains(label, word) })
}

// As returns what stands for a policy, a scheduler, or whatever else has a name: what
// replaces it, or itself.
func (o Options) As(name string) string {
	if o.Variant != nil {
		if other, ok := o.Variant.Replace[name]; ok {
			return other
		}
	}
	return name
}

// varied is the configuration of a run, as the variant has it. The options of a policy that
// is replaced are not the other one's.
func (o Options) varied(c sim.Config) sim.Config {
	if name := o.As(c.Policy); name != c.Policy {
		c.Policy, c.Options, c.Spray = name, policy.Options{}, sim.SprayOptions{}
	}
	if o.Variant != nil && o.Variant.Tune != nil {
		o.Variant.Tune(&c)
	}
	return c
}

// compare tells of each variant's report beside that of the experiment itself, which is
// before it. It tells nothing of a variant whose report is nil, or that of its experiment.
func compare(subjects []Subject, reports []*Report, tell func(v *Variant, itself, other *Report)) {
	var itself *Report
	for i, s := range subjects {
		switch {
		case s.Variant == nil:
			itself = reports[i]
		case itself != nil && reports[i] != nil:
			tell(s.Variant, itself, reports[i])
		}
	}
}

// twin finds the row of a report that has the label and the metric of another's.
func (r *Report) twin(of Row) (Row, bool) {
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Label == of.Label && row.Metric == of.Metric })
	if i < 0 {
		return Row{}, false
	}
	return r.Rows[i], true
}
