package main

import (
	"fmt"
	"io"

	"weft/fabric"
	"weft/internal/table"
	"weft/lab"
)

// printLabels prints what became of packets with labels, where there are any.
func printLabels(w io.Writer, nodes []lab.NodeStatus) error {
	t := table.NewWriter(w, -1)
	head := "\nLABELS\tPOPPED\tDECAPSULATED\tUNKNOWN\tENDED EARLY\tEXPIRED\tFORGED\tNESTED\tECN\tMALFORMED\n"
	for _, n := range nodes {
		if n.Labels == nil {
			continue
		}
		fmt.Fprint(t, head)
		head = ""
		l := *n.Labels
		var e fabric.EdgeCounters
		if n.Edge != nil {
			e = *n.Edge
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", n.Node, l.Popped, l.Decapsulated, l.Unknown, l.Ended, l.Expired,
			e.Forged, e.Nested, e.ECN, l.Malformed+e.Malformed)
	}
	return t.Flush()
}
