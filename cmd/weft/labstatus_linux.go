package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"weft/fabric"
	"weft/internal/table"
	"weft/lab"
	"weft/topology"
)

func printStatus(w io.Writer, nodes []lab.NodeStatus) error {
	t := table.NewWriter(w, -1)
	fmt.Fprintln(t, "NODE\tLAYER\tLINKS UP\tDECAP\tDECAPSULATED\tREFUSED\tTX MB\tRX MB\tQUEUE DROPS")
	for _, n := range nodes {
		if n.Error != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\n", n.Node, n.Layer, n.Error)
			continue
		}
		var up int
		var tx, rx, drops uint64
		for _, p := range n.Ports {
			if p.Up {
				up++
			}
			tx += p.TxBytes
			rx += p.RxBytes
			drops += p.Drops
		}
		decap, packets, refused := "-", "-", "-"
		if n.Decap != "" {
			decap = n.Decap
		}
		if c := n.Counters; c != nil {
			packets = fmt.Sprint(c.Decapsulated)
			refused = refusals(c)
		}
		fmt.Fprintf(t, "%s\t%s\t%d/%d\t%s\t%s\t%s\t%.1f\t%.1f\t%d\n", n.Node, n.Layer, up, len(n.Ports),
			decap, packets, refused, float64(tx)/1e6, float64(rx)/1e6, drops)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printMeters(w, labMeters(nodes))
}

// labMeters are the meters of all nodes, each port with its node's name.
func labMeters(nodes []lab.NodeStatus) (all []fabric.PortMeter) {
	for _, n := range nodes {
		for _, p := range n.Ports {
			if p.Meter != nil {
				m := *p.Meter
				m.Port = n.Node + " " + p.Port
				all = append(all, m)
			}
		}
	}
	return all
}

// failureList is for people: what has failed, and how.
func failureList(failed map[string]lab.FailureMode) string {
	if len(failed) == 0 {
		return "nothing has been made to fail"
	}
	var all []string
	for _, target := range slices.Sorted(maps.Keys(failed)) {
		how := "SILENT"
		switch failed[target] {
		case lab.FailLoud:
			how = "FAILED"
		case lab.FailSilentData:
			how = "SILENT for data"
		}
		all = append(all, target+" "+how)
	}
	return strings.Join(all, ", ")
}

// printAgents prints on how many switches agents run, those of weft lab agents and of weft
// switch alike.
func printAgents(w io.Writer, l *lab.Lab) error {
	if l.Config.Graph != nil {
		return printRouting(w, l)
	}
	run, all := 0, 0
	for n := range switchesOf(l.Config.Topology) {
		if len(l.Config.Only) > 0 && !slices.Contains(l.Config.Only, n.ID) {
			continue
		}
		all++
		err := l.Do(n.ID, func() error {
			if lab.AgentRuns() {
				run++
			}
			return nil
		})
		if err != nil {
			continue // the node's row says what is wrong
		}
	}
	_, err := fmt.Fprintf(w, "agents run on %d of %d switches\n", run, all)
	return err
}

// printRouting prints on how many switches of a graph FRR runs.
func printRouting(w io.Writer, l *lab.Lab) error {
	run, all := 0, 0
	first, _ := l.Config.Graph.Tier(1)
	for id := int(first); id < l.Config.Graph.NumNodes(); id++ {
		all++
		if l.Routing(topology.NodeID(id)) == nil {
			run++
		}
	}
	_, err := fmt.Fprintf(w, "FRR runs on %d of %d switches\n", run, all)
	return err
}
