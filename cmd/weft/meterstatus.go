package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"weft/fabric"
)

// printMeters prints what the meters of a switch's ports have measured, after an
// empty line; nothing if there are none.
func printMeters(w io.Writer, meters []fabric.PortMeter) error {
	if len(meters) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nmetered\tMbit/s\tqueue bytes\tmax\tload\tDRE\tmarks above\tmarked\tsamples\tdropped")
	for _, m := range meters {
		fmt.Fprintf(t, "%s\t%g\t%d\t%d\t%.0f %%\t%d\t%s\t%d\t%d\t%d\n", m.Port, m.RateBits/1e6, m.Length, m.Max, m.Load*100, m.DRE, above(m.ECNBytes), m.Marks, m.Samples, m.Drops)
	}
	return t.Flush()
}

// above is the length of a queue above which packets are marked.
func above(bytes uint64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprint(bytes)
}
