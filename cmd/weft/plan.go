package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weft/encap"
	"weft/fabric"
	"weft/internal/config"
)

func newPlanCmd() *cobra.Command {
	var spec, node, carrier, language string
	var opts fabric.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan --node NODE",
		Short: "What a node must be configured with, as ip commands or JSON",
		Long: `Plan prints the configuration of one switch or host as commands to be pasted
into a shell there, as root; for machines that weft does not run on. A node is
named hP.S.ID, eP.S, aP.S, cJ.I, a core also 3.R, or given by its address.

With --for frr it prints what a switch of a fabric of your own needs in FRR's language:
BGP with add-path, and the sessions of hosts. --topology is then a graph, in a file such
as weft topology prints. Without --node it prints all switches.`,
		Example: "  weft plan --topology fat-tree:k=4 --node a2.2 --port-format swp%d\n" +
			"  weft plan --topology vl2:d0=2,d1=4,d2=4 --node 3.1\n" +
			"  weft plan --topology fat-tree:k=4 --node e0.0 --encap srv6\n" +
			"  weft plan --topology fabric.yaml --node e0.0\n" +
			"  weft plan --for frr --topology graph.yaml --node leaf1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch language {
			case "frr":
				return planFRR(cmd.OutOrStdout(), spec, node)
			case "iproute2":
			default:
				return fmt.Errorf("--for %q: must be iproute2 or frr", language)
			}
			if node == "" {
				return errors.New("--node is missing: name a switch or host, such as a2.2")
			}
			t, err := config.Topology(spec)
			if err != nil {
				return err
			}
			n, err := t.Lookup(node)
			if err != nil {
				return err
			}
			if err := opts.Carry(carrier); err != nil {
				return fmt.Errorf("--encap: %w", err)
			}
			plan, err := fabric.Plan(t, n.ID, opts)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), plan)
			}
			for _, line := range plan.Commands() {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		},
	}
	topologyFlag(cmd, &spec)
	cmd.Flags().StringVar(&node, "node", "", "the node (required)")
	cmd.Flags().StringVar(&opts.PortFormat, "port-format", fabric.DefaultPortFormat, "how the node calls its ports, from 0")
	cmd.Flags().StringVar(&carrier, "encap", encap.CarrierIPIP.String(), "what packets have their path in: ipip (always planned), srv6 or mpls")
	cmd.Flags().StringVar(&language, "for", "iproute2", "the language: iproute2 or frr")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
