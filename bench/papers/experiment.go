// Package papers is the frame in which the papers' experiments are run again: an
// experiment is a setting, rows of a paper's figure beside ours, and a verdict, by one
// seed or by the medians of several.
//
// An Experiment states its setting, what was chosen where the paper is silent and why, its
// rows with tolerances fixed beforehand, and a verdict that follows from the rows. Runs are
// independent of each other, so running several at once changes nothing but the time. With
// several seeds a row is the median of all, judged by the rule that it carries; a statement
// holds if it does with more than half of them.
package papers

import "context"

// Experiment is one of a paper's.
type Experiment struct {
	Name   string // as in weft sim list: drb-f6-fattree
	Source string // DRB §5.1, Fig. 6
	Title  string // what it shows, in a line
	// Setting is what the paper states and what had to be chosen. It is the same in
	// all rows of one paper, unless the paper's changes.
	Setting []Parameter
	Run     func(ctx context.Context, o Options) (*Outcome, error)
}

// Parameter is one of a setting.
type Parameter struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Chosen bool   `json:"chosen"` // by us, since the paper does not state it
	Why    string `json:"why,omitempty"`
}

// Options are of a run.
type Options struct {
	Quick bool // a smaller fabric or a shorter time: to see that it works, not what it says
	Seed  uint64
	Seeds int // Run takes so many, from Seed on: 0 is 1. An experiment looks at Seed alone
	Jobs  int // runs at once
	// Progress is told of how many runs are done, by one caller at a time; it may be
	// nil. An experiment with several sweeps begins anew with each.
	Progress func(done, total int)
}

// Outcome is what came out.
type Outcome struct {
	Rows    []Row
	Because string // why, where it does not agree within tolerances
	// Judge is for experiments whose verdict or reason differs from the function Judge's
	// and Because. It depends on the rows alone. With several seeds these are the rows of
	// all, and only the first seed's Judge is called.
	Judge      func(rows []Row) (Verdict, string)
	Charts     []Chart
	Settings   []Parameter // of this run, besides the Experiment's: what --quick changed
	PacketHops uint64      // of all runs
}

// Row is one figure. Numbers are of the unit that Metric names. Label and Metric together
// are unique in an experiment and, like Paper and Note, do not depend on the seed: they
// join the rows of several seeds.
type Row struct {
	Label  string   `json:"label"`  // DRB
	Metric string   `json:"metric"` // goodput, Mbit/s per host
	Paper  *float64 `json:"paper"`  // nil: the paper does not state it
	Ours   float64  `json:"ours"`
	// Low and High are the least and the most of several seeds, of which Ours is the
	// median; nil with one seed.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// TolerancePercent is how far Ours may be from Paper for OK, stated before the run. A
	// row without Paper, or whose Paper is a bound, says in Note what OK means.
	TolerancePercent float64 `json:"tolerance_percent"`
	OK               bool    `json:"ok"`
	Note             string  `json:"note,omitempty"`

	// rule says whether Ours is OK. A row without one is a statement, about its figure or
	// another, which holds if it does with most seeds.
	rule func(ours float64) bool
	held int // of several seeds, with so many it is OK
}

// Verdict sums up an experiment.
type Verdict string

// The verdicts.
const (
	Agrees      Verdict = "agrees within its tolerance"
	AgreesOrder Verdict = "agrees in sign and order"
	Disagrees   Verdict = "disagrees"
)

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
}

// Bar is ours beside the paper's.
type Bar struct {
	Name  string
	Ours  float64
	Paper *float64
}
