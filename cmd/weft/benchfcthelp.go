package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"weft/bench/fct"
)

func benchFCTHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Fct builds a lab and plays flows in it, in one row after the other: flows begin at
the times of a Poisson process, and their sizes follow a workload of the papers,
scaled to slow links. All rows play the same flows. It needs root.

A flow is a TCP connection of its own. It has finished when the sender has read that all
bytes arrived; its completion time is the sender's, from the call that connects on.
Flows without that answer at the deadline are unfinished, and count as if they
ended then. Mice are smaller than 100 KB, elephants larger than 10 MB, before sizes are
scaled. Flows of one time begin together.

A slowdown is a completion time divided by that of a flow of the same size which is alone
in an idle lab. That is measured first, in a lab without --failure and without rules at
switches, with the kernel's TCP over ECMP: one byte between hosts of the same rack, of the
same pod and far apart, and some larger sizes between hosts far apart. All rows divide by
it, the simulator's, too.

In a round each row runs under all loads; rounds have seeds of their own, and every
other round takes the rows backwards. Flows are of all rounds together, other figures
are medians over the rounds. A percentile is null, or - in the table, if one of the rounds
has so few flows of the size that the percentile would be their maximum. A run begins and
ends with an idle fabric. A round that fails has no figures: it is told and counted, and
the other rounds have theirs. If a row has no figures at all, the exit status is 1.

A job is, for instance, a file of incast. It begins with its first flow and ends with its
last; the size class is jobs. Its slowdown divides by the time of a single flow, of as many
bytes as the job sends over the host link that carries most of them. So 100 divided by a
job's slowdown is its throughput in percent of that flow's, as in CONGA's Fig. 13.

Rules of flowlets (letflow, conga) choose a path anew after a pause of 500 µs in a flow,
which is for links of 10 Gbit/s. In a slow lab there is such a pause before every packet:
give a longer gap, as in switch-letflow:gap=60ms.

A workload file is JSON: see weft sim fct --help.

Traffic:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, l := range fct.TrafficHelp() {
		fmt.Fprintf(tw, "  %s\t%s\n", l[0], l[1])
	}
	tw.Flush()
	fmt.Fprint(&s, `
Rows, and who balances the load in them. Flowcells have --flowcell bytes, 4 KB by default:
`)
	for _, r := range fct.Rows() {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", r.Name, r.Where, r.Hosts.Label)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}
