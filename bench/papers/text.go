package papers

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"weft/internal/table"
)

// WriteText writes the report without the machine's resources, so it is the same for the
// same seed.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n%s\n", r.Experiment, r.Source, r.Title)
	b.WriteString(r.seeds())
	if r.Quick {
		b.WriteString(" Quick: made smaller, so that figures say little.")
	}
	b.WriteString("\n\n")

	notes := notesOf(r.Rows)
	tw := table.NewWriter(&b, -1)
	ours := "ours"
	if r.Seeds > 0 {
		ours = "ours\trange"
	}
	fmt.Fprintf(tw, "row\tmetric\tpaper\t%s\ttolerance\tok\tnote\n", ours)
	for _, row := range r.Rows {
		ours = row.ours()
		if r.Seeds > 0 {
			ours += "\t" + row.span(r.Seeds)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Label, row.Metric,
			row.paper(), ours, row.tolerance(), row.mark(), notes.mark(row))
	}
	tw.Flush()
	for i, n := range notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, n)
	}

	fmt.Fprintf(&b, "\nVerdict: %s; %s within tolerance.\n", r.Verdict, r.Score)
	if r.Because != "" {
		fmt.Fprintf(&b, "Because: %s\n", r.Because)
	}
	for _, s := range []string{r.decided(), r.noEvidence()} {
		if s != "" {
			fmt.Fprintf(&b, "%s\n", s)
		}
	}
	for _, part := range []struct {
		title string
		list  []Parameter
	}{{"Stated by the paper", r.Stated}, {"Inferred by us, and why", r.Inferred}, {"Of this run", r.OfRun}} {
		if len(part.list) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", part.title)
		}
		for _, p := range part.list {
			fmt.Fprintf(&b, "  %s\n", p)
		}
	}
	_, err := w.Write(trimLines(b.Bytes()))
	return err
}

// noEvidence says which mutants pass.
func (r *Report) noEvidence() string {
	if len(r.Passing) == 0 {
		return ""
	}
	return "Not evidence: it passes as well where " + strings.Join(r.Passing, "; and where ") + "."
}

// decided says what rows that are out depend on.
func (r *Report) decided() string {
	if r.Decided == nil || !r.Decided.Any() {
		return ""
	}
	return "Rows that are out: " + r.Decided.String() + "."
}

// seeds says which, and what several mean for figures and statements.
func (r *Report) seeds() string {
	if r.Seeds == 0 {
		return fmt.Sprintf("Seed %d.", r.Seed)
	}
	return fmt.Sprintf("Seeds %d to %d: ours is the median, the range the least and the most; a statement holds if it does with more than half of the seeds.",
		r.Seed, r.Seed+uint64(r.Seeds)-1)
}

// Took says in a sentence which resources of the machine the run took.
func (r *Report) Took() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%.1f s, %.1f s CPU", r.WallS, r.CPUS)
	if r.PacketHops > 0 {
		fmt.Fprintf(&s, ", %s M packet-hops, %.1f M a CPU second", number(float64(r.PacketHops)/1e6), r.PacketHopsPerCPUS/1e6)
	}
	if r.RSSMB > 0 {
		fmt.Fprintf(&s, ", %.0f MB", r.RSSMB)
	}
	if r.RSSMB > 0 && r.PeakOfProcess {
		s.WriteString(" (the process's)")
	}
	return s.String()
}

// trimLines takes away the blanks that a table leaves behind empty cells.
func trimLines(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.Write(bytes.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.Bytes()
}
