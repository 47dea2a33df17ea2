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
ended then. Slowdown is the completion time by that of a flow alone: two round trips,
measured in the idle lab, and its packets at the rate of the hosts' links. Mice are
smaller than 100 KB, elephants larger than 10 MB, before sizes are scaled.

In a round each row runs under all loads; rounds have seeds of their own, and every
other round takes the rows backwards. Flows are of all rounds together, other figures
are medians over the rounds. A run begins and ends with an idle fabric.

A job, such as a file of incast, begins with its first flow and ends with its last: size
class jobs. By a job's ideal time its bytes cross the host's link that carries most of it.
So 100 by its slowdown is the throughput of CONGA's Fig. 13, in percent.

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
