package main

import "github.com/spf13/cobra"

// defaultTopology is the smallest fabric that has everything.
const defaultTopology = "fat-tree:k=4"

// topologyFlag adds --topology to a command; config.Topology reads its value.
func topologyFlag(cmd *cobra.Command, spec *string) {
	cmd.Flags().StringVar(spec, "topology", defaultTopology,
		"the fabric: fat-tree:k=K, leaf-spine:leaves=L,spines=S,hosts=H, vl2:d0=A,d1=B,d2=C, or the name of a .yaml file")
}
