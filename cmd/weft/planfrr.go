package main

import (
	"fmt"
	"io"
	"os"

	"weft/internal/switchconf"
	"weft/topology/graph"
)

// planFRR prints the configuration of a switch of a graph, or of all of them, in FRR's
// language. file is the graph's.
func planFRR(w io.Writer, file, node string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--for frr needs a graph with AS numbers, such as weft topology prints: --topology: %w", err)
	}
	g, err := graph.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	first, _ := g.Tier(1)
	if node != "" {
		id, ok := g.ByName(node)
		if !ok {
			return fmt.Errorf("node %q: not in %s", node, file)
		}
		return printFRR(w, g, id)
	}
	for id := first; int(id) < g.NumNodes(); id++ {
		fmt.Fprintf(w, "! ---- %s ----\n", g.Node(id).Name)
		if err := printFRR(w, g, id); err != nil {
			return err
		}
	}
	return nil
}

func printFRR(w io.Writer, g *graph.Graph, id graph.NodeID) error {
	text, err := switchconf.FRR(g, id, switchconf.Options{})
	if err != nil {
		return err
	}
	fmt.Fprint(w, text)
	if commands := switchconf.Decapsulation(g, id); len(commands) > 0 {
		fmt.Fprintln(w, "! FRR does not decapsulate. On Linux these commands do; let no IP-in-IP into the fabric\n! from outside, as the devices accept any inner source (CVE-2025-23018):")
		for _, c := range commands {
			fmt.Fprintln(w, "!  ", c)
		}
	}
	return nil
}
