package papers

import (
	"fmt"
	"slices"
	"strings"
)

// Decided is what findings say of a report's rows that are out.
type Decided struct {
	Out   int    `json:"out"`             // rows that are out
	Of    int    `json:"decided"`         // those of them that are decided
	By    string `json:"by,omitempty"`    // the parameters and values that decide them
	Seeds int    `json:"seeds,omitempty"` // of the findings; may be fewer than the report's
}

// All reports whether there are rows that are out, and each is decided.
func (d Decided) All() bool { return d.Out > 0 && d.Of == d.Out }

func (d Decided) String() string {
	if d.Of == 0 {
		return fmt.Sprintf("none of %d rows out decided", d.Out)
	}
	s := "decided"
	if !d.All() {
		s = fmt.Sprintf("%d of %d rows out decided", d.Of, d.Out)
	}
	return fmt.Sprintf("%s by %s: %s", s, counted(d.Seeds, "seed"), d.By)
}

// Open counts experiments whose verdicts leave something to be decided: those that
// disagree, are not decided by their seeds, or are in order with rows out.
type Open struct{ Decided, Of int }

// Add counts an experiment.
func (o *Open) Add(v Verdict, d Decided) {
	if v == Disagrees || v == Undecided || v == AgreesOrder && d.Out > 0 {
		o.Of++
		if d.All() {
			o.Decided++
		}
	}
}

func (o Open) String() string {
	return fmt.Sprintf("%d of %d that disagree, are undecided or have rows out are decided by other values of open parameters", o.Decided, o.Of)
}

// Decide says what rows that are out depend on. Such a row is decided if some value of a
// decision moves it, or if no value of the decisions that speak of it does and each of them
// spans all that is plausible. Findings in the small form do not count, nor do those of
// decisions and values that the experiment does not have any more.
func Decide(e Experiment, rows []Row, found []Finding) (d Decided) {
	var open []Row
	for _, r := range rows {
		if r.out() {
			open = append(open, r)
		}
	}
	d.Out = len(open)
	tried := e.tried(found)
	if len(tried) > 0 {
		d.Seeds = tried[0].Seeds
	}
	var by []string
	for {
		best, most := mover(tried, open)
		if most == 0 {
			break
		}
		by = append(by, best.moves(most))
		open = slices.DeleteFunc(open, func(r Row) bool { return has(best.Moved, r) })
	}
	var none []string // of each row that nothing moves, the parameters
	for _, r := range open {
		if parameters := e.immovable(r, tried); parameters != "" {
			none = append(none, parameters)
		}
	}
	d.Of = d.Out - len(open) + len(none)
	for len(none) > 0 {
		first, before := none[0], len(none)
		none = slices.DeleteFunc(none, func(p string) bool { return p == first })
		by = append(by, fmt.Sprintf("no plausible %s moves %s", first, counted(before-len(none), "row")))
	}
	d.By = strings.Join(by, "; ")
	return d
}

// tried are the findings of an experiment in full, in the order of its decisions, without
// rows of which these do not speak any more.
func (e Experiment) tried(found []Finding) (tried []Finding) {
	for _, d := range e.Decisions {
		for _, v := range d.Values {
			if f := d.finding(e, v, found); f != nil {
				now := *f
				now.Moved = slices.DeleteFunc(slices.Clone(f.Moved), func(f Figure) bool { return !speaks(d.About, f.Label) })
				tried = append(tried, now)
			}
		}
	}
	return tried
}

func (d *Decision) finding(e Experiment, v DecisionValue, found []Finding) *Finding {
	i := slices.IndexFunc(found, func(f Finding) bool {
		return f.Experiment == e.Name && !f.Quick && f.Parameter == d.Parameter && f.Value == v.Name
	})
	if i < 0 {
		return nil
	}
	return &found[i]
}

// mover is the finding that moves most rows, and of those that move as many the first of
// those that break the fewest.
func mover(tried []Finding, open []Row) (best *Finding, most int) {
	for i := range tried {
		f, moved := &tried[i], 0
		for _, r := range open {
			if has(f.Moved, r) {
				moved++
			}
		}
		if moved > most || moved > 0 && moved == most && len(f.Broken) < len(best.Broken) {
			best, most = f, moved
		}
	}
	return best, most
}

func (f *Finding) moves(rows int) string {
	s := fmt.Sprintf("%s %s moves %s", f.Parameter, f.Value, counted(rows, "row"))
	if n := len(f.Broken); n > 0 {
		s += fmt.Sprintf(" and breaks %d", n)
	}
	return s
}

// immovable are the parameters of decisions that speak of a row, if each spans all that is
// plausible and each value leaves the row out.
func (e Experiment) immovable(r Row, tried []Finding) string {
	var parameters []string
	for _, d := range e.Decisions {
		if !speaks(d.About, r.Label) {
			continue
		}
		for _, v := range d.Values {
			if f := d.finding(e, v, tried); d.Ends == "" || f == nil || !has(f.Unmoved, r) {
				return ""
			}
		}
		parameters = append(parameters, d.Parameter)
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
