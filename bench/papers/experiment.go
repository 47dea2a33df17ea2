// Package papers is the frame in which the papers' experiments are repeated. An
// experiment is a setting, rows of a paper's figure beside ours, and a verdict, by one
// seed or by the medians of several.
//
// An Experiment states its setting, the choices that we made where the paper is silent
// and why, its rows with tolerances fixed beforehand, and a verdict that follows from the
// rows. Runs are independent of each other, so running several at once changes only the
// time. With several seeds a row is the median of all, judged by the rule that it
// carries. A statement holds if it holds with more than half of the seeds, and is decided
// if it does so by more than chance.
//
// See Judge for the rules of verdicts, Tie and the like for tolerances, Mutant for whether
// a verdict says anything, and Decision for what figures that are out depend on.
package papers

import "context"

// Experiment is one experiment of a paper.
type Experiment struct {
	Name   string // as in weft sim list: drb-f6-fattree
	Source string // DRB §5.1, Fig. 6
	Title  string // what it shows, in one line
	// Setting is what the paper states and what we had to infer. It is the same in all
	// rows of one paper, unless the paper's changes.
	Setting []Parameter
	// Mutants must not pass.
	Mutants []Mutant
	// Decisions say what rows that are out depend on.
	Decisions []Decision
	// Judge, if not nil, replaces the function Judge and Outcome.Because. It depends on the
	// rows alone, which are those of all seeds.
	Judge func(rows []Row) (Verdict, string)
	Run   func(ctx context.Context, o Options) (*Outcome, error)
}

// Parameter is one parameter of a setting. Where we run another value than the stated
// one, there are two of the name: the stated one, and ours, which is Chosen.
type Parameter struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Chosen bool   `json:"-"`             // inferred by us, not stated by the paper
	Why    string `json:"why,omitempty"` // the evidence
}

// Options are the options of a run.
type Options struct {
	Quick bool // a smaller fabric or a shorter time: only to see that the experiment runs
	Seed  uint64
	Seeds int // number of seeds that Run takes, from Seed on; 0 means 1. An experiment looks at Seed alone
	Jobs  int // runs at once
	// Variant is what a mutant or a value of a decision has in place of what is the
	// experiment's own; nil: nothing. See As and Sweep.
	Variant *Variant
	// Progress is called with the number of finished runs, by one caller at a time; it
	// may be nil. An experiment with several sweeps begins at 0 with each. The function Run
	// calls it with thousandths of all seeds.
	Progress func(done, total int)

	turn *turn // of a run that shares places with others; nil: it has Jobs of its own
}

// Outcome is the result of an experiment.
type Outcome struct {
	Rows       []Row
	Because    string // why it does not agree within tolerances, said where it does not
	Charts     []Chart
	Settings   []Parameter // of this run, besides the Experiment's: what --quick changed
	PacketHops uint64      // of all runs
}

// Row is one figure. Numbers are in the unit that Metric names. Label and Metric together
// are unique in an experiment and, like Paper and Note, do not depend on the seed: they
// identify the same row of several seeds.
type Row struct {
	Label  string   `json:"label"`  // DRB
	Metric string   `json:"metric"` // goodput, Mbit/s per host
	Kind   Kind     `json:"kind"`
	Paper  *float64 `json:"paper"` // nil: the paper does not state it
	Ours   float64  `json:"ours"`
	// Low and High are the least and the greatest value of several seeds, of which Ours
	// is the median; nil with one seed.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// TolerancePercent is how far Ours may be from Paper for OK. It was fixed before the
	// run. If a row has no Paper, or Paper is a bound, Note says what OK means.
	TolerancePercent float64 `json:"tolerance_percent"`
	OK               bool    `json:"ok"`
	Note             string  `json:"note,omitempty"`

	// Held is with how many of so many Seeds a statement holds. Seeds of a figure are those
	// of which Ours is the median; 0: one.
	Held  int `json:"held,omitempty"`
	Seeds int `json:"seeds,omitempty"`

	// rule says whether Ours is OK. A row without a rule is a statement, about its figure
	// or another one. It holds if it holds with most seeds.
	rule *rule
}

// Chart is a paper's figure redrawn.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool // of Lines; what is not above 0 is drawn at the edge
	// Lines over a numeric X, or Bars over names: one of both.
	Lines []Line
	Bars  []Bar
}

// Line is a curve, a CDF for one.
type Line struct {
	Name string
	X, Y []float64
	// Paper are points of it that the paper states.
	Paper []Point
}

// Point is one of a Chart with Lines.
type Point struct{ X, Y float64 }

// State adds a point that the paper states of the line of that name.
func (c *Chart) State(line string, x, y float64) {
	for i := range c.Lines {
		if l := &c.Lines[i]; l.Name == line {
			l.Paper = append(l.Paper, Point{x, y})
			return
		}
	}
	panic("papers: chart " + c.Title + " has no line " + line)
}

// Bar is our value beside the paper's.
type Bar struct {
	Name  string
	Ours  float64
	Paper *float64
}
