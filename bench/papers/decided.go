package papers

import (
	"fmt"
	"slices"
	"strings"
)

// Decided is what findings say of a report's rows that are out.
type Decided struct {
	Out int `json:"out"`     // rows that are out
	Of  int `json:"decided"` // those of them that are decided: moved, or still
	// Still is how many of these no plausible value moves. That says what the parameters do not
	// explain, and nothing of what does.
	Still int    `json:"still"`
	By    string `json:"by,omitempty"` // the parameters and values that decide them
	// Fits is how many of the others are moved by fitted values alone, and Fit are these.
	Fits  int    `json:"moved_by_fits,omitempty"`
	Fit   string `json:"fits,omitempty"`
	Seeds int    `json:"seeds,omitempty"` // of the findings; may be fewer than the report's
}

// All reports whether there are rows that are out, and each is decided.
func (d Decided) All() bool { return d.Out > 0 && d.Of == d.Out }

// Any reports whether something is said of a row that is out.
func (d Decided) Any() bool { return d.Of+d.Fits > 0 }

func (d Decided) String() string {
	s := fmt.Sprintf("%d of %d rows out decided", d.Of, d.Out)
	switch {
	case d.All():
		s = "decided"
	case d.Of == 0:
		s = fmt.Sprintf("none of %d rows out decided", d.Out)
	}
	if d.Of > 0 {
		s += fmt.Sprintf(" by %s: %s", counted(d.Seeds, "seed"), d.By)
	}
	if d.Fits > 0 {
		s += fmt.Sprintf("; %s moved by a fit, which decides nothing: %s", counted(d.Fits, "row"), d.Fit)
	}
	return s
}

// Open counts experiments whose verdicts leave something to be decided: those that
// disagree, are not decided by their seeds, or are in order with rows out.
type Open struct {
	Decided, Of int
	Fits        int // those that are not decided, of which each row out is so or moved by a fit
	Rows, Out   int // rows of all of them that are decided, and that are out
	Still       int // those of the decided that no plausible value moves
}

// Add counts an experiment.
func (o *Open) Add(v Verdict, d Decided) {
	if v == Disagrees || v == Undecided || v == AgreesOrder && d.Out > 0 {
		o.Of++
		o.Rows, o.Out, o.Still = o.Rows+d.Of, o.Out+d.Out, o.Still+d.Still
		switch {
		case d.All():
			o.Decided++
		case d.Out > 0 && d.Of+d.Fits == d.Out:
			o.Fits++
		}
	}
}

func (o Open) String() string {
	s := fmt.Sprintf("%d of %d that disagree, are undecided or have rows out are decided", o.Decided, o.Of)
	if o.Fits > 0 {
		s += fmt.Sprintf(", and %d by nothing but fits to their own figures", o.Fits)
	}
	if o.Out > 0 {
		s += fmt.Sprintf("; of their %d rows out %d are moved by another value of an open parameter, and %d by no plausible one", o.Out, o.Rows-o.Still, o.Still)
	}
	return s
}

// Decide says what a report's rows that are out depend on. Such a row is decided if some
// value of a decision moves it, or if no value of the decisions that speak of it does, and
// each of them spans all that is plausible. A fitted value decides nothing, nor does one that
// breaks as many of the paper's rows as it moves of those that no other has moved. Findings count if they are in full, of the
// report's experiment as it is identified, of seeds of the report, and of decisions and
// values that the experiment still has.
func Decide(e Experiment, report *Report, found []Finding) (d Decided) {
	var open []Row
	for _, r := range report.Rows {
		if report.isOut(r) {
			open = append(open, r)
		}
	}
	d.Out = len(open)
	tried := e.tried(report, found)
	for i, f := range tried {
		if i == 0 || f.Seeds < d.Seeds {
			d.Seeds = f.Seeds // the fewest
		}
	}
	by, open := moving(tried, open, false)
	var none []string   // of each row that nothing moves, the parameters
	var immovable []Row // these rows
	open = slices.DeleteFunc(open, func(r Row) bool {
		parameters := e.immovable(r, tried)
		if parameters != "" {
			none, immovable = append(none, parameters), append(immovable, r)
		}
		return parameters != ""
	})
	d.Of, d.Still = d.Out-len(open), len(immovable)
	for len(none) > 0 {
		first, before := none[0], len(none)
		none = slices.DeleteFunc(none, func(p string) bool { return p == first })
		by = append(by, fmt.Sprintf("no plausible %s moves %s", first, counted(before-len(none), "row")))
	}
	if words, _ := moving(tried, immovable, true); len(words) > 0 {
		by = append(by, "against the paper's words "+strings.Join(words, " and "))
	}
	fits, left := moving(tried, open, true)
	d.By, d.Fits, d.Fit = strings.Join(by, "; "), len(open)-len(left), strings.Join(fits, "; ")
	return d
}

// moving are findings that move rows, best first, and the rows that none of them moves.
func moving(tried []Finding, open []Row, fitted bool) (by []string, left []Row) {
	tried = slices.DeleteFunc(slices.Clone(tried), func(f Finding) bool { return f.Fitted != fitted })
	left = slices.Clone(open)
	for {
		best, most := mover(tried, left)
		if most == 0 {
			return by, left
		}
		by = append(by, best.moves(most))
		left = slices.DeleteFunc(left, func(r Row) bool { return has(best.Moved, r) })
	}
}

// tried are the findings of an experiment that count for a report, in the order of its
// decisions, without rows of which these do not speak any more. Orders that few seeds move, break or
// leave say nothing beside a report with enough of them: a coin would.
func (e Experiment) tried(report *Report, found []Finding) (tried []Finding) {
	found = slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Experiment != e.Name || !f.of(report) })
	for _, d := range e.Decisions {
		for _, v := range d.Values {
			if f := d.finding(v, found); f != nil {
				now := *f
				now.Fitted = v.Fitted
				few := f.Seeds < EnoughSeeds && report.Seeds >= EnoughSeeds
				idle := func(f Figure) bool { return !speaks(d.About, f.Label) || few && f.Kind == KindOrder }
				now.Moved = slices.DeleteFunc(slices.Clone(f.Moved), idle)
				now.Unmoved = slices.DeleteFunc(slices.Clone(f.Unmoved), idle)
				now.Broken = slices.DeleteFunc(slices.Clone(f.Broken), func(f Figure) bool { return few && f.Kind == KindOrder })
				tried = append(tried, now)
			}
		}
	}
	return tried
}

// of reports whether a finding is in full, of a report's setting and rows, and of its seeds
// or some of them.
func (f *Finding) of(r *Report) bool {
	return !f.Quick && f.Identity != "" && f.Identity == r.Identity &&
		f.Seed >= r.Seed && f.Seed+uint64(f.Seeds) <= r.Seed+uint64(max(r.Seeds, 1))
}

func (d *Decision) finding(v DecisionValue, found []Finding) *Finding {
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Parameter == d.Parameter && f.Value == v.Name })
	if i < 0 {
		return nil
	}
	return &found[i]
}

// mover is the finding that moves most of the rows that are open, and of those that move as
// many the first of those that break the fewest. One that breaks as many is none.
func mover(tried []Finding, open []Row) (best *Finding, most int) {
	for i := range tried {
		f, moved := &tried[i], 0
		for _, r := range open {
			if has(f.Moved, r) {
				moved++
			}
		}
		if !f.pays(moved) {
			continue
		}
		if moved > most || moved > 0 && moved == most && f.breaks() < best.breaks() {
			best, most = f, moved
		}
	}
	return best, most
}

func (f *Finding) moves(rows int) string {
	s := fmt.Sprintf("%s %s moves %s", f.Parameter, f.Value, counted(rows, "row"))
	if n := f.breaks(); n > 0 {
		s += fmt.Sprintf(" and breaks %d", n)
	}
	return s
}

// immovable are parameters of decisions that speak of a row, if each spans all that is
// plausible, each value leaves the row out, and none between two values would move it. Those
// are named of which a value brings the row nearer to the paper's figure, or which say why
// none can: one that only takes it away has not been tried on the side where the paper is.
// What the paper states is no open parameter.
func (e Experiment) immovable(r Row, tried []Finding) string {
	var parameters []string
	for _, d := range e.Decisions {
		if d.Against != "" || !speaks(d.About, r.Label) {
			continue
		}
		var same []Figure
		for _, v := range d.Values {
			if f := d.finding(v, tried); f != nil {
				same = append(same, figuresOf(f.Unmoved, r.Label, r.Metric)...)
			}
		}
		if d.Ends == "" || len(same) < len(d.Values) || !d.Discrete && straddles(same) {
			return ""
		}
		if d.Nearest != "" || slices.ContainsFunc(same, Figure.nearer) {
			parameters = append(parameters, d.Parameter)
		}
	}
	return strings.Join(parameters, " or ")
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
