package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"weft/fabric"
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
	homing        operator.Homing
}

func (f *labFabric) flags(cmd *cobra.Command) {
	topologyFlag(cmd, &f.spec)
	flags := cmd.Flags()
	flags.Lookup("topology").Usage += ", which may also be a graph (see weft topology) or containerlab's"
	flags.StringVar(&f.routing, "routing", "", "how switches find routes: static, by weft, two-level, the same with host IDs in place of ECMP, or bgp, by FRR and with an operator's addresses (default: static, of graphs bgp)")
	flags.Uint64Var(&f.seed, "seed", 1, "what an operator's addresses are made from")
	flags.IntVar(&f.homing.Uplinks, "uplinks", 1, "with BGP, of how many edge switches a rack has, each wired to all hosts of the rack")
	flags.IntVar(&f.homing.Planes, "planes", 1, "with BGP, how many times the switches are built, with all hosts wired to each")
}

// homed reports whether hosts are to have several uplinks.
func (f *labFabric) homed() bool { return f.homing.Uplinks != 1 || f.homing.Planes != 1 }

// read sets what is built. It returns the fabric's name, and what had to be guessed, a line
// each.
func (f *labFabric) read(cfg *lab.Config) (name string, guesses []string, err error) {
	if f.homed() && f.routing != "bgp" {
		return "", nil, usagef("--uplinks and --planes are for computed fabrics with an operator's addresses: add --routing bgp")
	}
	if f.homing.Uplinks < 1 || f.homing.Planes < 1 {
		return "", nil, usagef("--uplinks %d, --planes %d: must be 1 at least", f.homing.Uplinks, f.homing.Planes)
	}
	switch f.routing {
	case "", "static", "bgp":
	case fabric.RoutingTwoLevel:
		cfg.Routing = f.routing
	default:
		return "", nil, usagef("--routing %s: must be static, two-level or bgp", f.routing)
	}
	if ext := filepath.Ext(f.spec); ext == ".yaml" || ext == ".yml" {
		text, err := config.ReadInput(f.spec, maxInput)
		if err != nil {
			return "", nil, usagef("--topology: %w", err)
		}
		found, ok, err := discover.Read(text)
		if err != nil {
			return "", nil, config.InFile(f.spec, text, err)
		}
		if ok && f.homed() {
			return "", nil, usagef("--uplinks, --planes: %s is a graph, which says itself where hosts are wired to; leave them out", f.spec)
		}
		if ok {
			if f.routing == "static" || f.routing == fabric.RoutingTwoLevel {
				return "", nil, usagef("--routing %s: %s is a graph, and weft knows static routes of computed fabrics only; leave --routing out", f.routing, f.spec)
			}
			if cfg.Graph, err = graph.New(found.Spec); err != nil {
				return "", nil, config.InFile(f.spec, text, err)
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
	spec, err := operator.SpecHomed(t, f.seed, f.homing)
	if err != nil {
		return "", nil, usagef("--uplinks, --planes: %w", err)
	}
	if cfg.Graph, err = graph.New(spec); err != nil {
		return "", nil, err
	}
	name = fmt.Sprintf("%s with an operator's addresses (seed %d)", t, f.seed)
	if f.homing.Uplinks > 1 {
		name += fmt.Sprintf(", %d edge switches a rack", f.homing.Uplinks)
	}
	if f.homing.Planes > 1 {
		name += fmt.Sprintf(", in %d planes", f.homing.Planes)
	}
	return name, nil, nil
}
