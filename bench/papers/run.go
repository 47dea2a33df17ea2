package papers

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Report is the result of a run. Two runs of one seed differ only in the machine's
// resources that they took.
type Report struct {
	Experiment string `json:"experiment"`
	Source     string `json:"source"`
	Title      string `json:"title"`
	Seed       uint64 `json:"seed"`            // the first
	Seeds      int    `json:"seeds,omitempty"` // how many; 0: one
	Quick      bool   `json:"quick"`

	// Of one experiment alone, these are the process's. Of several in a pool, or of parts that
	// were kept, they are the sums over seeds, which may have overlapped: of each the time
	// from its beginning to its end, and the time on processors of its simulations' threads.
	WallS             float64 `json:"wall_s"`
	CPUS              float64 `json:"cpu_s"` // 0: unknown
	PacketHops        uint64  `json:"packet_hops"`
	PacketHopsPerCPUS float64 `json:"packet_hops_per_cpu_s"`
	RSSMB             float64 `json:"rss_mb"` // the most memory that was resident, in 10^6 bytes; 0: unknown

	Verdict Verdict `json:"verdict"`
	Score   Score   `json:"score"`
	Because string  `json:"because"`
	// Passing are mutants that are known to pass, too: then the verdict is no evidence.
	// Run does not know them.
	Passing []string `json:"passing_mutants,omitempty"`
	// Decided says what rows that are out depend on; nil: nobody has tried. Run does not know.
	Decided  *Decided    `json:"decided,omitempty"`
	Rows     []Row       `json:"rows"`
	Stated   []Parameter `json:"stated"`   // by the paper
	Inferred []Parameter `json:"inferred"` // by us, each with the evidence
	OfRun    []Parameter `json:"of_run"`   // what was made of them here, and counted

	Charts []Chart `json:"-"`
	// Defined is the file of the experiment, by its path in the repository, and Stored is what is
	// kept of it, in words; "": not known. Run does not know them.
	Defined string `json:"-"`
	Stored  string `json:"-"`
	// PeakOfProcess says that RSSMB is not of this run alone: the system cannot reset it, or
	// others ran as well.
	PeakOfProcess bool `json:"-"`
	// Identity is the experiment's, with these rows.
	Identity string `json:"-"`
	// Machines are those that gave the parts, as far as they say.
	Machines []string `json:"-"`
}

// Run runs an experiment and measures the resources that the process takes; nothing else
// should run in the process meanwhile. With several seeds the report has the medians, and a
// verdict on these. An error is the experiment's, ctx's, or names a row that is not a
// number or that not every seed has.
func Run(ctx context.Context, e Experiment, o Options) (report *Report, err error) {
	b := Batch{Subjects: Subjects([]Experiment{e}), Options: o, Watch: func(p Progress) {
		if o.Progress != nil {
			o.Progress(p.PerMille, 1000)
		}
	}}
	failed := b.Run(ctx, func(_ int, r *Report, failed error) { report, err = r, failed })
	if err == nil {
		err = failed
	}
	return report, err
}

// Machines are those that gave the parts of reports, each once.
func Machines(reports ...*Report) (all []string) {
	for _, r := range reports {
		for _, m := range r.Machines {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// Apart keeps what the paper states and what was inferred apart.
func Apart(setting []Parameter) (stated, inferred []Parameter) {
	stated, inferred = []Parameter{}, []Parameter{}
	for _, p := range setting {
		if p.Chosen {
			inferred = append(inferred, p)
		} else {
			stated = append(stated, p)
		}
	}
	return stated, inferred
}

// check finds what a careless experiment has left out.
func (o *Outcome) check() error {
	if len(o.Rows) == 0 {
		return errors.New("no rows")
	}
	for _, r := range o.Rows {
		if !finite(r.Ours) || r.Paper != nil && !finite(*r.Paper) {
			return fmt.Errorf("row %q, %s: %v is no figure", r.Label, r.Metric, r.Ours)
		}
	}
	return nil
}

// verdict judges what came of all seeds, and says why if the experiment does not.
func (e Experiment) verdict(o *Outcome, quick bool) (v Verdict, because string, err error) {
	switch {
	case e.Judge != nil:
		v, because = e.Judge(o.Rows)
	case !slices.ContainsFunc(o.Rows, func(r Row) bool { return r.Note != noClaim }):
		return "", "", errors.New("no row has a figure of the paper's: say what the verdict is")
	default:
		if v = Judge(o.Rows); v != Agrees {
			because = o.Because
		}
	}
	if v != Agrees && because == "" {
		because = "we have not found out why"
		if quick {
			because = "made smaller"
		}
	}
	return v, because, nil
}
