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
ended then. Slowdown is the completion time by that of a flow of the same size that is
alone in the idle lab, with the kernel's TCP over ECMP: that is measured for some sizes
first, and all rows divide by it, the simulator's, too. Mice are smaller than 100 KB,
elephants larger than 10 MB, before sizes are scaled. Flows of one time begin together.
A percentile of so few samples that it would be their maximum is null, or - in the table.

In a round each row runs under all loads; rounds have seeds of their own, and every
other round takes the rows backwards. Flows are of all rounds together, other figures
are medians over the rounds. A run begins and ends with an idle fabric. A row whose lab
cannot be built or run has an error in place of figures, and the exit status is 1.

A job, such as a file of incast, begins with its first flow and ends with its last: size
class jobs. By a job's ideal time its bytes cross the host's link that carries most of it.
So 100 by its slowdown is the throughput of CONGA's Fig. 13, in percent of what a flow of
as many bytes has alone.

Flowlets of 500 µs are for links of 10 Gbit/s. In slow labs every packet is one: give
a longer gap.

A workload file is JSON: see weft sim fct --help.

Traffic:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, l := range fct.TrafficHelp() {
		fmt.Fprintf(tw, "  %s\t%s\n", l[0], l[1])
	}
	tw.Flush()
	fmt.Fprint(&s, `
Rows, and who balances the load in them:
`)
	for _, r := range fct.Rows() {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", r.Name, r.Where, r.Hosts.Label)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}
