package papers

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Subject is an experiment, or a variant of it.
type Subject struct {
	Experiment
	Variant *Variant // nil: the experiment itself
}

// Subjects are experiments without variants.
func Subjects(list []Experiment) []Subject {
	subjects := make([]Subject, len(list))
	for i, e := range list {
		subjects[i] = Subject{Experiment: e}
	}
	return subjects
}

// Unit is a subject with one seed: what is run, kept and merged as a whole.
type Unit struct {
	Subject
	Seed uint64
}

// Units are all subjects with all seeds of options, subject by subject.
func Units(subjects []Subject, o Options) []Unit {
	var units []Unit
	for _, s := range subjects {
		for i := range o.seeds() {
			units = append(units, Unit{s, o.Seed + uint64(i)})
		}
	}
	return units
}

// MaxSeeds is more than anyone waits for.
const MaxSeeds = 100

// seeds is how many there are.
func (o Options) seeds() int { return max(o.Seeds, 1) }

// Part is what a unit gave.
type Part struct {
	Outcome *Outcome `json:"outcome"`
	// What it took of the machine.
	WallS   float64 `json:"wall_s"`
	CPUS    float64 `json:"cpu_s"` // 0: unknown
	Machine string  `json:"machine,omitempty"`
}

// run runs a unit. Its goroutine has begun the turn.
func (u Unit) run(ctx context.Context, o Options, t *turn) (*Part, error) {
	start := time.Now()
	o.Seed, o.Seeds, o.Variant, o.turn = u.Seed, 1, u.Variant, t
	out, err := u.Run(ctx, o)
	if err == nil {
		err = out.check()
	}
	if err != nil {
		return nil, err
	}
	cpu := t.taken() + threadTime() - t.began
	return &Part{Outcome: out, WallS: time.Since(start).Seconds(), CPUS: cpu.Seconds()}, nil
}

// named is the error of a unit, one of several seeds if there are several.
func (u Unit) named(err error, seeds int) error {
	if seeds > 1 {
		err = fmt.Errorf("seed %d: %w", u.Seed, err)
	}
	return u.Subject.named(err)
}

func (s Subject) named(err error) error {
	err = fmt.Errorf("%s: %w", s.Name, err)
	if s.Variant != nil {
		err = fmt.Errorf("%s: %w", s.Variant, err)
	}
	return err
}

// report is what a subject's parts say, one of each seed.
func (s Subject) report(o Options, parts []*Part) (*Report, error) {
	all := make([]*Outcome, len(parts))
	r := &Report{Experiment: s.Name, Source: s.Source, Title: s.Title, Seed: o.Seed, Quick: o.Quick}
	for i, p := range parts {
		all[i] = p.Outcome
		r.WallS += p.WallS
		r.CPUS += p.CPUS
		if p.Machine != "" && !slices.Contains(r.Machines, p.Machine) {
			r.Machines = append(r.Machines, p.Machine)
		}
	}
	out, err := combine(o.Seed, all)
	if err != nil {
		return nil, s.named(err)
	}
	if r.Verdict, r.Because, err = s.verdict(out, o.Quick); err != nil {
		return nil, s.named(err)
	}
	r.Identity = s.Identity(out.Rows)
	r.PacketHops, r.Score, r.Rows, r.Charts = out.PacketHops, ScoreOf(out.Rows), out.Rows, out.Charts
	r.OfRun = append([]Parameter{}, out.Settings...)
	r.Stated, r.Inferred = Apart(s.Setting)
	if o.Seeds > 1 {
		r.Seeds = o.Seeds
	}
	r.rate()
	return r, nil
}

// rate is how fast the simulator was.
func (r *Report) rate() {
	if r.CPUS > 0 {
		r.PacketHopsPerCPUS = float64(r.PacketHops) / r.CPUS
	}
}
