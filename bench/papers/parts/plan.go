package parts

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"weft/bench/papers"
)

// Plan says which parts belong together: those of a run that several machines share.
type Plan struct {
	Format      int      `json:"format"`
	Build       Build    `json:"build"`
	Experiments []string `json:"experiments"`
	Mutants     bool     `json:"mutants,omitempty"` // each experiment with its mutants
	Quick       bool     `json:"quick"`
	Seed        uint64   `json:"seed"` // the first
	Seeds       int      `json:"seeds"`
}

// PlanOf is that of a run.
func PlanOf(b Build, list []papers.Experiment, mutants bool, o papers.Options) Plan {
	p := Plan{Format: format, Build: b, Mutants: mutants, Quick: o.Quick, Seed: o.Seed, Seeds: max(o.Seeds, 1)}
	for _, e := range list {
		p.Experiments = append(p.Experiments, e.Name)
	}
	return p
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
	}
	return p, nil
}

// String is the plan in words.
func (p Plan) String() string {
	const shown = 3
	names := strings.Join(p.Experiments, ", ")
	if n := len(p.Experiments); n > shown {
		names = fmt.Sprintf("%s and %d more", strings.Join(p.Experiments[:shown], ", "), n-shown)
	}
	if p.Mutants {
		names += ", each with its mutants"
	}
	return fmt.Sprintf("%s, seeds %d to %d, %s, by %s", names, p.Seed, p.Seed+uint64(p.Seeds)-1, form(p.Quick), p.Build)
}
