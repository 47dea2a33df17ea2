package main

import (
	"fmt"
	"io"

	"weft/fabric"
	"weft/internal/table"
)

// printMeters prints what the meters of a switch's ports have measured, after an
// empty line; nothing if there are none.
func printMeters(w io.Writer, meters []fabric.PortMeter) error {
	if len(meters) == 0 {
		return nil
	}
	t := table.NewWriter(w, -1)
	fmt.Fprintln(t, "\nmetered\tMbit/s\tqueue bytes\tmax\tload\tDRE\tmarks above\tmarked\tsamples\tdropped")
	for _, m := range meters {
		fmt.Fprintf(t, "%s\t%g\t%d\t%d\t%.0f %%\t%d\t%s\t%d\t%d\t%d\n", m.Port, m.RateBits/1e6, m.Length, m.Max, m.Load*100, m.DRE, above(m.ECNBytes), m.Marks, m.Samples, m.Drops)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := printRED(w, meters); err != nil {
		return err
	}
	return printQCN(w, meters)
}

// printQCN prints what the congestion points of the ports that have them have done; nothing if
// none has.
func printQCN(w io.Writer, meters []fabric.PortMeter) error {
	t := table.NewWriter(w, -1)
	head := "\nQCN\ttarget bytes\tsampled\tlost\n"
	for _, m := range meters {
		if q := m.QCN; q.Target != 0 {
			fmt.Fprintf(t, "%s%s\t%d\t%d\t%d\n", head, m.Port, q.Target, q.Sampled, q.Lost)
			head = ""
		}
	}
	return t.Flush()
}

// printFeedback prints what senders were told of congestion points; nothing if nobody tells.
func printFeedback(w io.Writer, s *fabric.TellerStats) {
	if s == nil {
		return
	}
	fmt.Fprintf(w, "\nfeedback: %d messages sent, not sent: %s\n", s.Told,
		byCause(map[string]uint64{"above the bounds": s.Bounded, "foreign": s.Foreign, "failed": s.Failed, "malformed": s.Malformed}))
	if s.Ended != "" {
		fmt.Fprintf(w, "feedback has ended: %s\n", s.Ended)
	}
}

// printRED prints what RED has done at the ports that have it; nothing if none has.
func printRED(w io.Writer, meters []fabric.PortMeter) error {
	t := table.NewWriter(w, -1)
	head := "\nRED\taverage bytes\tmin\tmax\tmarked\tdropped early\tfor certain\n"
	for _, m := range meters {
		if r := m.RED; r.Max != 0 {
			fmt.Fprintf(t, "%s%s\t%d\t%d\t%d\t%d\t%d\t%d\n", head, m.Port, r.Average, r.Min, r.Max, m.Marks, r.EarlyDrops, r.ForcedDrops)
			head = ""
		}
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
