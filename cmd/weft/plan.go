package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/encap"
	"weft/fabric"
	"weft/internal/config"
	"weft/topology"
)

type planFlags struct {
	spec, node, carrier, language string
	options                       fabric.Options
}

// planLanguages are what --for takes.
var planLanguages = []string{"iproute2", "frr", "sonic", "json"}

func newPlanCmd() *cobra.Command {
	var f planFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "What switches and hosts must be configured with, in their own languages",
		Long: `Plan prints the configuration of a switch or host, for machines that weft does not run
on; without --node that of all. --for says in which language:

  iproute2  commands to be pasted into a shell there, as root
  frr       what FRR reads. What it does not do, decapsulation, is printed as comments: as
            commands for Linux
  sonic     a script: entries for CONFIG_DB, by the names of SONiC's YANG models, and lines
            for vtysh that CONFIG_DB has no words for
  json      all of it, for programs

--topology is a computed fabric, whose nodes are named hP.S.ID, eP.S, aP.S, cJ.I, a core also
3.R, or given by their addresses; or a file with a graph, such as weft topology prints. The
switches of a graph run BGP, with add-path, and sessions with the hosts. They take the outer
headers of IP-in-IP off at their own addresses, and those of SRv6 at their SIDs, if the graph
has any:

  spine1: {tier: 2, addresses: [172.16.0.1], as: 65001, sids: {node: "fcbb:bbbb:1::/48"}}

A computed fabric has static routes in place of BGP, which is why it is printed as commands
and JSON only. With --routing two-level the last byte of the destination, its host ID, chooses
the port up, in place of ECMP's hash.`,
		Example: "  weft plan --topology fat-tree:k=4 --node a2.2 --port-format swp%d\n" +
			"  weft plan --topology vl2:d0=2,d1=4,d2=4 --node 3.1\n" +
			"  weft plan --topology fat-tree:k=4 --node e0.0 --encap srv6\n" +
			"  weft plan --topology fat-tree:k=4 --node e0.0 --routing two-level\n" +
			"  weft plan --topology fabric.yaml --node e0.0\n" +
			"  weft plan --for frr --topology graph.yaml --node leaf1\n" +
			"  weft plan --for sonic --topology graph.yaml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(planLanguages, f.language) {
				return usagef("--for %q: must be one of %s", f.language, strings.Join(planLanguages, ", "))
			}
			if asJSON {
				f.language = "json"
			}
			t, g, err := config.Fabric(f.spec)
			switch {
			case err != nil:
				return err
			case g != nil:
				return f.runGraph(cmd.OutOrStdout(), g)
			}
			return f.run(cmd.OutOrStdout(), t)
		},
	}
	topologyFlag(cmd, &f.spec)
	cmd.Flags().StringVar(&f.node, "node", "", "the node; all if it is not given")
	cmd.Flags().StringVar(&f.options.PortFormat, "port-format", fabric.DefaultPortFormat, "how the nodes of a computed fabric call their ports, from 0")
	cmd.Flags().StringVar(&f.carrier, "encap", encap.CarrierIPIP.String(), "what packets have their path in: ipip (always planned), srv6 or mpls")
	cmd.Flags().StringVar(&f.options.Routing, "routing", fabric.RoutingECMP, "how switches of a computed fabric spread what goes up: "+strings.Join(fabric.Routings(), " or "))
	cmd.Flags().StringVar(&f.language, "for", planLanguages[0], "the language: "+strings.Join(planLanguages, ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "as --for json")
	return cmd
}

// run prints what one node of a computed fabric, or each, is configured with.
func (f planFlags) run(w io.Writer, t *topology.Topology) error {
	if f.language == "frr" || f.language == "sonic" {
		return usagef("--for %s needs a graph with AS numbers, such as weft topology prints: in %s routes are static, and --for iproute2 prints them", f.language, t)
	}
	if err := f.options.Carry(f.carrier); err != nil {
		return usagef("--encap: %w", err)
	}
	first, end := topology.NodeID(0), topology.NodeID(t.NumNodes())
	if f.node != "" {
		n, err := t.Lookup(f.node)
		if err != nil {
			return usagef("--node: %w", err)
		}
		first, end = n.ID, n.ID+1
	}
	var all []fabric.NodePlan
	for id := first; id < end; id++ {
		p, err := fabric.Plan(t, id, f.options)
		if err != nil {
			return usage(err)
		}
		switch {
		case f.language == "json":
			all = append(all, p)
			continue
		case f.node == "":
			fmt.Fprintf(w, "# ---- %s ----\n", p.Node)
		}
		printLines(w, "", p.Commands())
	}
	switch {
	case f.language != "json":
		return nil
	case f.node != "":
		return printJSON(w, all[0])
	}
	return printJSON(w, all)
}
