package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/config"
	"weft/internal/discover"
	"weft/topology/graph"
)

func newTopologyFromLLDPCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "from-lldp FILE|DIRECTORY ...",
		Short: "Make a graph of what nodes see by LLDP",
		Long: `From-lldp reads the output of lldpcli -f json show neighbors, one file a node, which is called
by the node's name, such as leaf1.json. Nodes without a file are known by their neighbors. A
directory stands for its files that end in .json.`,
		Example: "  lldpcli -f json show neighbors > $(hostname).json    # at each switch\n  weft topology from-lldp leaf1.json leaf2.json > graph.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			texts := make(map[string][]byte)
			for _, arg := range args {
				files := []string{arg}
				if i, err := os.Stat(arg); err == nil && i.IsDir() {
					if files, err = filepath.Glob(filepath.Join(arg, "*.json")); err != nil || len(files) == 0 {
						return usagef("%s: no file ends in .json; name a directory that has such files, or the files", arg)
					}
				}
				for _, file := range files {
					text, err := config.ReadInput(file, maxInput)
					if err != nil {
						return err
					}
					texts[strings.TrimSuffix(filepath.Base(file), ".json")] = text
				}
			}
			found, err := discover.LLDP(texts)
			if err != nil {
				return usage(err)
			}
			g, err := graph.New(found.Spec)
			if err != nil {
				return usage(err)
			}
			return printGraph(cmd.OutOrStdout(), g, found.Guesses)
		},
	}
}
