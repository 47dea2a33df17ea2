package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/fabric"
	"weft/internal/switchconf"
	"weft/lab"
	"weft/topology/graph"
)

func newLabExportCmd(name *string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export --containerlab FILE",
		Short: "Write the lab as a containerlab file",
		Long: `Export writes a lab that runs BGP as a topology file of containerlab: the switches
are containers of FRR, the hosts Linux. Their configuration is written to a folder of the
file's name beside it. What containerlab has no words for, such as addresses and AS
numbers, is in labels, so that weft lab up --topology FILE builds the same lab.
Containers need the kernel module ipip to decapsulate, and have no rates.`,
		Example: "  weft lab export --containerlab fabric.clab.yml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("--containerlab is missing: name the file to write")
			}
			return withLab(*name, func(l *lab.Lab) error {
				if l.Config.Graph == nil {
					return fmt.Errorf("lab %s is a computed fabric without BGP; containerlab's switches run FRR: weft lab up --routing bgp", *name)
				}
				others, err := exportContainerlab(l.Config, file)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "wrote %s, and %d files in %s\n", file, others, containerlabDir(file))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&file, "containerlab", "", "`file` to write, which ends in .clab.yml or .yaml")
	return cmd
}

// containerlabDir is the folder for what a containerlab file needs.
func containerlabDir(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, filepath.Ext(file)), ".clab")
}

// exportContainerlab writes a containerlab file and others beside it, and returns how many.
func exportContainerlab(c lab.Config, file string) (int, error) {
	dir := containerlabDir(file)
	if dir == file {
		return 0, usagef("--containerlab %s: must end in .clab.yml or .yaml", file)
	}
	opts := switchconf.ContainerlabOptions{Name: c.Name, Dir: filepath.Base(dir), Options: switchconf.Options{BFD: c.BFD}}
	var failed error
	opts.Exec = func(id graph.NodeID) []string {
		commands, err := containerCommands(c.Graph, id)
		failed = errors.Join(failed, err)
		return commands
	}
	text, others, err := switchconf.Containerlab(c.Graph, opts)
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	for name, text := range others {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	return len(others), os.WriteFile(file, text, 0o644)
}

// containerCommands are what a container runs for what its FRR, if any, does not do.
func containerCommands(g *graph.Graph, id graph.NodeID) (list []string, err error) {
	p, err := fabric.PlanGraph(g, id)
	if err != nil {
		return nil, err
	}
	for _, c := range p.Commands() {
		c, _, _ = strings.Cut(c, "#")
		c, _, _ = strings.Cut(c, "||") // no shell reads it, and what fails is only reported
		if c = strings.TrimSpace(c); c != "" && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list, nil
}
