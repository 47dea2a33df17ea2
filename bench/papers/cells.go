package papers

import (
	"fmt"
	"slices"
)

// What a row and a parameter look like to people, in the text and on the page.

func (r Row) paper() string {
	switch {
	case r.Paper == nil:
		return "-"
	case r.statement():
		return "holds"
	}
	return number(*r.Paper)
}

func (r Row) ours() string {
	switch {
	case !r.statement():
		return number(r.Ours)
	case r.OK:
		return "holds"
	}
	return "does not"
}

// span is what several seeds gave: of a figure the least and the most, of a statement
// with how many it holds.
func (r Row) span(seeds int) string {
	switch {
	case seeds == 0:
		return ""
	case r.statement():
		return fmt.Sprintf("%d of %d", r.Held, seeds)
	}
	return number(*r.Low) + " to " + number(*r.High)
}

func (r Row) statement() bool { return r.Metric == metricOrder || r.Metric == metricClaim }

func (r Row) tolerance() string {
	if r.TolerancePercent == 0 {
		return "-"
	}
	return number(r.TolerancePercent) + " %"
}

// mark is no word where there is nothing to agree with.
func (r Row) mark() string {
	switch {
	case r.Note == noClaim:
		return "-"
	case r.OK:
		return "yes"
	}
	return "no"
}

// String is the parameter in a line.
func (p Parameter) String() string {
	if p.Why == "" {
		return p.Name + ": " + p.Value
	}
	return fmt.Sprintf("%s: %s (%s)", p.Name, p.Value, p.Why)
}

// notes are those of a table's rows, each once.
type notes []string

func notesOf(rows []Row) (n notes) {
	for _, r := range rows {
		if r.Note != "" && r.Note != noClaim && !slices.Contains(n, r.Note) {
			n = append(n, r.Note)
		}
	}
	return n
}

// mark refers to a row's note.
func (n notes) mark(r Row) string {
	if i := slices.Index(n, r.Note); i >= 0 {
		return fmt.Sprintf("[%d]", i+1)
	}
	return ""
}
