package papers

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report without what the machine took: it is the same for
// the same seed.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n%s\n", r.Experiment, r.Source, r.Title)
	fmt.Fprintf(&b, "Seed %d.", r.Seed)
	if r.Quick {
		b.WriteString(" Quick: made smaller, so that figures say little.")
	}
	b.WriteString("\n\n")

	notes := notesOf(r.Rows)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "row\tmetric\tpaper\tours\ttolerance\tok\tnote")
	for _, row := range r.Rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Label, row.Metric,
			row.paper(), row.ours(), row.tolerance(), row.mark(), notes.mark(row))
	}
	tw.Flush()
	for i, n := range notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, n)
	}

	fmt.Fprintf(&b, "\nVerdict: %s.\n", r.Verdict)
	if r.Because != "" {
		fmt.Fprintf(&b, "Because: %s\n", r.Because)
	}
	if len(r.Parameters) > 0 {
		b.WriteString("\nSetting (* chosen by us):\n")
	}
	for _, p := range r.Parameters {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	_, err := w.Write(trimLines(b.Bytes()))
	return err
}

// Took says in a sentence what the run took of the machine.
func (r *Report) Took() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%.1f s, %.1f s CPU", r.WallS, r.CPUS)
	if r.PacketHops > 0 {
		fmt.Fprintf(&s, ", %s M packet-hops, %.1f M a CPU second", number(float64(r.PacketHops)/1e6), r.PacketHopsPerCPUS/1e6)
	}
	fmt.Fprintf(&s, ", %.0f MB", r.RSSMB)
	if r.PeakOfProcess {
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
