package papers

import (
	"math"
	"slices"
)

// Finding is what an experiment gives with one value of a decision, beside the experiment
// itself.
type Finding struct {
	Experiment string  `json:"experiment"`
	Parameter  string  `json:"parameter"`
	Value      string  `json:"value"`
	Ends       string  `json:"ends"` // why the values span all that is plausible; "": they do not
	Discrete   bool    `json:"discrete"`
	Fitted     bool    `json:"fitted"` // the value was chosen by the paper's own figures
	Quick      bool    `json:"quick"`
	Seed       uint64  `json:"seed"`
	Seeds      int     `json:"seeds"`
	Identity   string  `json:"identity,omitempty"` // see Experiment.Identity; "": not known
	Verdict    Verdict `json:"verdict"`            // with the value
	Itself     Verdict `json:"itself"`             // the experiment's own
	Out        int     `json:"out"`                // number of the experiment's own rows that are out
	// Moved are those of them that the decision speaks of and that are OK with the value.
	Moved []Figure `json:"moved"`
	// Unmoved are those that it speaks of and that are out with the value, too.
	Unmoved []Figure `json:"unmoved"`
	// Broken are all rows, whatever they speak of, that are OK and are not with the value.
	Broken []Figure `json:"broken"`
	// Machines are those that gave the parts of both, as far as they say.
	Machines []string `json:"-"`
}

// Figure is a row with a value and without.
type Figure struct {
	Label  string   `json:"label"`
	Metric string   `json:"metric"`
	Kind   Kind     `json:"kind"`
	Paper  *float64 `json:"paper"`
	Itself float64  `json:"itself"`
	Ours   float64  `json:"ours"` // with the value
}

// Findings are those of subjects that have values of decisions behind each experiment, by
// the report of each. A value whose report is nil, or that of its experiment, has none.
func Findings(subjects []Subject, o Options, reports []*Report) (found []Finding) {
	compare(subjects, reports, func(v *Variant, itself, other *Report) {
		found = append(found, findingOf(v, itself, other, o))
	})
	return found
}

func findingOf(v *Variant, itself, other *Report, o Options) Finding {
	f := Finding{
		Experiment: itself.Experiment, Parameter: v.Decision.Parameter, Value: v.Name, Ends: v.Decision.Ends, Discrete: v.Decision.Discrete, Fitted: v.Fitted,
		Quick: o.Quick, Seed: o.Seed, Seeds: o.seeds(), Identity: itself.Identity, Verdict: other.Verdict, Itself: itself.Verdict,
		Moved: []Figure{}, Unmoved: []Figure{}, Broken: []Figure{}, Machines: Machines(itself, other),
	}
	for _, r := range itself.Rows {
		if itself.isOut(r) {
			f.Out++
		}
		with, found := other.twin(r)
		if !found || r.Kind == KindInfo {
			continue
		}
		figure := Figure{r.Label, r.Metric, r.Kind, r.Paper, r.Ours, with.Ours}
		switch {
		case !r.failing() && with.failing():
			f.Broken = append(f.Broken, figure)
		case itself.isOut(r) && v.concerns(r) && with.failing():
			f.Unmoved = append(f.Unmoved, figure)
		case itself.isOut(r) && v.concerns(r):
			f.Moved = append(f.Moved, figure)
		}
	}
	return f
}

// pays reports whether a value breaks fewer of the paper's rows than so many that it moves.
func (f *Finding) pays(moved int) bool { return f.breaks() < moved }

// breaks is how many of the paper's rows a value breaks, those that chose a parameter included, or of our
// own if these are what it may move.
func (f *Finding) breaks() (n int) {
	papers := func(r Figure) bool { return Row{Kind: r.Kind}.papers() }
	own := !slices.ContainsFunc(f.Moved, papers) && !slices.ContainsFunc(f.Unmoved, papers)
	for _, r := range f.Broken {
		if papers(r) || r.Kind == KindFitted || own && r.Kind == KindOwn {
			n++
		}
	}
	return n
}

// nearer reports whether a value brings a figure nearer to the paper's. Of a statement, which
// holds or not, nobody can tell.
func (f Figure) nearer() bool {
	return f.Kind != KindOrder && f.Kind != KindClaim && f.Paper != nil && math.Abs(f.Ours-*f.Paper) < math.Abs(f.Itself-*f.Paper)
}

// straddles reports whether the paper's figure is between those of a row, as it is itself
// and with values that do not move it: what lies between these values may. A statement may
// fail to one side with one value and to the other with the next, which it does not say.
func straddles(same []Figure) bool {
	below, above := false, false
	for _, f := range same {
		if f.Kind == KindOrder || f.Kind == KindClaim {
			return true
		}
		if f.Paper != nil {
			below = below || min(f.Itself, f.Ours) < *f.Paper
			above = above || max(f.Itself, f.Ours) > *f.Paper
		}
	}
	return below && above
}

// failing reports whether a row is not OK, or is an order within the spread of seeds though
// these are enough to decide it.
func (r Row) failing() bool {
	return !r.OK || r.Kind == KindOrder && r.Seeds >= EnoughSeeds && !r.Decided()
}

// out reports whether a row is a figure or a statement of the paper's, not fitted, and fails.
func (r Row) out() bool {
	return r.failing() && r.papers()
}

// isOut reports whether a row of the report's is out. Where none is the paper's, those of our own make the
// verdict, so they count.
func (r *Report) isOut(row Row) bool {
	return row.out() || row.Kind == KindOwn && row.failing() && !slices.ContainsFunc(r.Rows, Row.papers)
}

// has reports whether figures have one of a row.
func has(figures []Figure, r Row) bool { return len(figuresOf(figures, r.Label, r.Metric)) > 0 }

// figuresOf are those of a row.
func figuresOf(figures []Figure, label, metric string) (same []Figure) {
	for _, f := range figures {
		if f.Label == label && f.Metric == metric {
			same = append(same, f)
		}
	}
	return same
}
