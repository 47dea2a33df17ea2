package faults

import (
	"fmt"
	"io"
	"time"

	"weft/internal/table"
)

// Print prints a table of results, which the tools had so long for.
func Print(w io.Writer, results []Result, within time.Duration) error {
	told, fabric := 0, 0
	tw := table.NewWriter(w, -1)
	fmt.Fprintln(tw, "FAULT\tTOLD BY\tAFTER\tIT SAYS FIRST")
	for _, r := range results {
		tool, after, said := "nobody", "-", r.Said
		switch {
		case r.Told != "":
			if told++; r.Told == Fabric {
				fabric++
			}
			tool, after = string(r.Told), fmt.Sprintf("%.1f s", r.Seconds)
		case len(r.Before) > 0:
			said = "(" + r.Before[len(r.Before)-1] + ")"
		}
		if r.Error != "" {
			said = "error: " + r.Error
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.Fault, tool, after, said)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d faults were named first by a tool, %d of them by one that was asked for %v, %d by doctor --fabric after that\n", told, len(results), told-fabric, within, fabric)
	return err
}

// Print prints what was said without a fault.
func (h Health) Print(w io.Writer) error {
	for _, a := range h.Alarms {
		fmt.Fprintf(w, "after %.0f s, %s: %s\n", a.Seconds, a.Tool, a.Said)
	}
	_, err := fmt.Fprintf(w, "%d false alarms in %.0f s: %d answers, %.1f Mbit/s of TCP\n", len(h.Alarms), h.Seconds, h.Asked, h.Mbit)
	return err
}
