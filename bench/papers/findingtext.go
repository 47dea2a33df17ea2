package papers

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/internal/table"
)

// WriteFindings writes a table for each decision, with what its values break below.
func WriteFindings(w io.Writer, found []Finding) error {
	var b bytes.Buffer
	for len(found) > 0 {
		n := slices.IndexFunc(found, func(f Finding) bool {
			return f.Experiment != found[0].Experiment || f.Parameter != found[0].Parameter
		})
		if n < 0 {
			n = len(found)
		}
		writeDecision(&b, found[:n])
		found = found[n:]
	}
	_, err := w.Write(trimLines(b.Bytes()))
	return err
}

// writeDecision is of the values of one decision.
func writeDecision(b *bytes.Buffer, values []Finding) {
	first, rows := values[0], spokenOf(values)
	form, spans := "", "The values do not span all that is plausible."
	if first.Quick {
		form = ", made smaller, so that figures say little"
	}
	if first.Ends != "" {
		spans = "The values span all that is plausible: " + first.Ends + "."
	}
	fmt.Fprintf(b, "%s: %s\nBy %s%s. The experiment itself: %s; %s out, of which the decision speaks of %d. %s\n\n",
		first.Experiment, first.Parameter, counted(first.Seeds, "seed"), form, first.Itself, counted(first.Out, "row"), len(rows), spans)
	tw := table.NewWriter(b, -1)
	if len(rows) > 0 {
		fmt.Fprintln(tw, "row that is out\tmetric\tpaper\tours\tmoved by")
	}
	for _, r := range rows {
		paper := "-"
		if r.Paper != nil {
			paper = number(*r.Paper)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.Label, r.Metric, paper, number(r.Itself), movers(values, r))
	}
	if len(rows) > 0 {
		fmt.Fprintln(tw)
	}
	fmt.Fprintln(tw, "value\tverdict\tmoves\tbreaks")
	for _, f := range values {
		broken := make([]string, len(f.Broken))
		for i, r := range f.Broken {
			broken[i] = fmt.Sprintf("%s, %s (%s to %s)", r.Label, r.Metric, number(r.Itself), number(r.Ours))
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d", f.named(), f.Verdict, len(f.Moved), len(broken))
		if len(broken) > 0 {
			fmt.Fprintf(tw, ": %s", strings.Join(broken, "; "))
		}
		if len(f.Moved) > 0 && !f.pays(len(f.Moved)) {
			fmt.Fprint(tw, "; no fewer of the paper's than it moves, so it decides nothing")
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	b.WriteString("\n")
}

// named is a value's name, which says so if it was fitted.
func (f *Finding) named() string {
	if f.Fitted {
		return f.Value + ", fitted"
	}
	return f.Value
}

// spokenOf are the rows that are out and that a decision speaks of, each once.
func spokenOf(values []Finding) (rows []Figure) {
	for _, f := range values {
		for _, r := range slices.Concat(f.Moved, f.Unmoved) {
			if len(figuresOf(rows, r.Label, r.Metric)) == 0 {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// movers are the values that move a row, with its figure; or all, if none does.
func movers(values []Finding, row Figure) string {
	var moved, unmoved []string
	var same []Figure
	for _, f := range values {
		for _, r := range figuresOf(f.Moved, row.Label, row.Metric) {
			moved = append(moved, fmt.Sprintf("%s (%s)", f.named(), number(r.Ours)))
		}
		for _, r := range figuresOf(f.Unmoved, row.Label, row.Metric) {
			unmoved = append(unmoved, fmt.Sprintf("%s (%s)", f.named(), number(r.Ours)))
			same = append(same, r)
		}
	}
	switch {
	case len(moved) > 0:
		return strings.Join(moved, ", ")
	case !values[0].Discrete && straddles(same):
		unmoved = append(unmoved, "but maybe one between")
	}
	return "none of " + strings.Join(unmoved, ", ")
}
