package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"weft/internal/config"
	"weft/internal/discover"
	"weft/lab"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// labFabric is what weft lab up is told to build.
type labFabric struct {
	spec, routing string
	seed          uint64
}

func (f *labFabric) flags(cmd *cobra.Command) {
	topologyFlag(cmd, &f.spec)
	flags := cmd.Flags()
	flags.Lookup("topology").Usage += ", which may also be a graph (see weft topology) or containerlab's"
	flags.StringVar(&f.routing, "routing", "", "how switches find routes: static, by weft, or bgp, by FRR and with an operator's addresses (default: static, of graphs bgp)")
	flags.Uint64Var(&f.seed, "seed", 1, "what an operator's addresses are made from")
}

// read sets what is built. It returns the fabric's name, and what had to be guessed, a line
// each.
func (f *labFabric) read(cfg *lab.Config) (name string, guesses []string, err error) {
	if f.routing != "" && f.routing != "static" && f.routing != "bgp" {
		return "", nil, fmt.Errorf("--routing %s: must be static or bgp", f.routing)
	}
	if ext := filepath.Ext(f.spec); ext == ".yaml" || ext == ".yml" {
		text, err := os.ReadFile(f.spec)
		if err != nil {
			return "", nil, fmt.Errorf("--topology: %w", err)
		}
		found, ok, err := discover.Read(text)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", f.spec, err)
		}
		if ok {
			if f.routing == "static" {
				return "", nil, fmt.Errorf("--routing static: %s is a graph, and weft knows static routes of computed fabrics only; leave --routing out", f.spec)
			}
			if cfg.Graph, err = graph.New(found.Spec); err != nil {
				return "", nil, fmt.Errorf("%s: %w", f.spec, err)
			}
			return f.spec, found.Guesses, nil
		}
	}
	t, err := config.Topology(f.spec)
	if err != nil {
		return "", nil, err
	}
	if f.routing != "bgp" {
		cfg.Topology = t
		return t.String(), nil, nil
	}
	if cfg.Graph, err = graph.New(operator.Spec(t, f.seed)); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s with an operator's addresses (seed %d)", t, f.seed), nil, nil
}
