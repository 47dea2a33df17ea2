package papers

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Report is an experiment that has been run. Only what the machine took differs
// between two runs of one seed.
type Report struct {
	Experiment string `json:"experiment"`
	Source     string `json:"source"`
	Title      string `json:"title"`
	Seed       uint64 `json:"seed"`
	Quick      bool   `json:"quick"`

	WallS             float64 `json:"wall_s"`
	CPUS              float64 `json:"cpu_s"` // of the process, all threads; 0: unknown
	PacketHops        uint64  `json:"packet_hops"`
	PacketHopsPerCPUS float64 `json:"packet_hops_per_cpu_s"`
	RSSMB             float64 `json:"rss_mb"` // the most that was resident, in 10^6 bytes

	Verdict    Verdict     `json:"verdict"`
	Because    string      `json:"because"`
	Rows       []Row       `json:"rows"`
	Parameters []Parameter `json:"parameters"`

	Charts []Chart `json:"-"`
	// PeakOfProcess says that RSSMB counts what was before this run as well, since
	// the system does not let it begin anew.
	PeakOfProcess bool `json:"-"`
}

// Run runs an experiment and measures what it takes of the process, in which
// nothing else should run meanwhile. An error is the experiment's, ctx's, or says
// which row is no number.
func Run(ctx context.Context, e Experiment, o Options) (*Report, error) {
	m := startMeter()
	out, err := e.Run(ctx, o)
	if err == nil {
		err = out.complete(o.Quick)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	r := &Report{
		Experiment: e.Name, Source: e.Source, Title: e.Title, Seed: o.Seed, Quick: o.Quick,
		PacketHops: out.PacketHops,
		Verdict:    out.Verdict, Because: out.Because, Rows: out.Rows, Charts: out.Charts,
		Parameters: slices.Concat(e.Setting, out.Settings),
	}
	m.into(r)
	return r, nil
}

// complete finds what a careless experiment has left out, and judges where it has
// not.
func (o *Outcome) complete(quick bool) error {
	if len(o.Rows) == 0 {
		return errors.New("no rows")
	}
	claims := 0
	for _, r := range o.Rows {
		if !finite(r.Ours) || r.Paper != nil && !finite(*r.Paper) {
			return fmt.Errorf("row %q, %s: %v is no figure", r.Label, r.Metric, r.Ours)
		}
		if r.Note != noClaim {
			claims++
		}
	}
	if o.Verdict == "" {
		if claims == 0 {
			return errors.New("no row has a figure of the paper's: say what the verdict is")
		}
		o.Verdict = Judge(o.Rows)
	}
	if o.Verdict != Agrees && o.Because == "" {
		o.Because = "we have not found out why"
		if quick {
			o.Because = "made smaller"
		}
	}
	return nil
}
