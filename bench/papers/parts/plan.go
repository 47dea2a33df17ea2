package parts

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/bench/papers"
)

// Plan says which parts belong together: those of a run that several machines share.
type Plan struct {
	Format      int      `json:"format"`
	Build       Build    `json:"build"`
	Experiments []string `json:"experiments"`
	Asked       []string `json:"asked,omitempty"` // the names and patterns that Experiments are of; nil: their own
	With        string   `json:"with,omitempty"`  // mutants or decisions, which run beside each experiment; "": nothing
	Quick       bool     `json:"quick"`
	Seed        uint64   `json:"seed"` // the first
	Seeds       int      `json:"seeds"`
}

// PlanOf is that of a run of experiments that were asked for by names, with what is beside
// each.
func PlanOf(b Build, list []papers.Experiment, names []string, with string, o papers.Options) Plan {
	p := Plan{Format: format, Build: b, With: with, Quick: o.Quick, Seed: o.Seed, Seeds: max(o.Seeds, 1)}
	for _, e := range list {
		p.Experiments = append(p.Experiments, e.Name)
	}
	if !slices.Equal(names, p.Experiments) {
		p.Asked = names
	}
	return p
}

// Names are those that the experiments were asked for by.
func (p Plan) Names() []string {
	if p.Asked == nil {
		return p.Experiments
	}
	return p.Asked
}

// plans is how the files of plans begin.
const plans = "plan-"

// File is the name of the plan's file.
func (p Plan) File() string { return plans + hash(p) + ".json" }

// Encode is the file of a plan.
func (p Plan) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(p, "", "  ")
	return append(b, '\n'), err
}

func decodePlan(name string, b []byte) (p Plan, err error) {
	switch err := json.Unmarshal(b, &p); {
	case err != nil || p.Format == format && p.File() != name:
		return p, errors.New("is torn or was changed: its name is not that of its content")
	case p.Format != format:
		return p, fmt.Errorf("has format %d, this weft reads %d", p.Format, format)
	case p.Seeds < 1 || p.Seeds > papers.MaxSeeds:
		return p, fmt.Errorf("is bad: seeds is %d, must be from 1 to %d", p.Seeds, papers.MaxSeeds)
	case p.Seed > math.MaxUint64-uint64(p.Seeds-1):
		return p, fmt.Errorf("is bad: seed is %d, must be lower, for the last of %d to be a seed", p.Seed, p.Seeds)
	case len(p.Experiments) == 0:
		return p, errors.New("is bad: experiments is empty, must name some")
	}
	return p, nil
}

// String is the plan in words.
func (p Plan) String() string {
	names := few(p.Experiments)
	if p.Asked != nil {
		names += " (as " + few(p.Asked) + ")"
	}
	if p.With != "" {
		names += ", each with its " + p.With
	}
	return fmt.Sprintf("%s, seeds %d to %d, %s, by %s", names, p.Seed, p.Seed+uint64(p.Seeds)-1, form(p.Quick), p.Build)
}

// few are the first of some names, and how many more there are.
func few(names []string) string {
	const shown = 3
	if n := len(names); n > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), n-shown)
	}
	return strings.Join(names, ", ")
}
