package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"weft/encap"
	"weft/fabric"
	"weft/internal/switchconf"
	"weft/topology/graph"
)

// graphPlan is all that a node of a graph must be configured with, in JSON.
type graphPlan struct {
	fabric.NodePlan
	FRR        string                `json:"frr,omitempty"`
	StaticSIDs []string              `json:"frr_static_sids,omitempty"` // for an FRR that sets SIDs itself
	SONiC      *switchconf.SONiCPlan `json:"sonic,omitempty"`
	Unplanned  string                `json:"unplanned,omitempty"` // why a switch has neither
}

// runGraph prints what one node of a graph, or each, is configured with.
func (f planFlags) runGraph(w io.Writer, g *graph.Graph) error {
	if c, err := encap.ParseCarrier(f.carrier); err != nil {
		return usagef("--encap: %w", err)
	} else if c == encap.CarrierMPLS {
		return usagef("--encap mpls: needs the ports of paths, which a graph leaves to the switches; leave --encap out")
	}
	if f.options.PortFormat != fabric.DefaultPortFormat {
		return usagef("--port-format %s: a graph has the names of its ports", f.options.PortFormat)
	}
	if f.options.Routing != fabric.RoutingECMP {
		return usagef("--routing %s: a graph's switches find their routes by BGP, and its addresses need not have host IDs; leave --routing out", f.options.Routing)
	}
	first, end := graph.NodeID(0), graph.NodeID(g.NumNodes())
	if f.language == "frr" || f.language == "sonic" {
		first, _ = g.Tier(1)
	}
	if f.node != "" {
		id, ok := g.ByName(f.node)
		if !ok {
			return usagef("--node %q: not in %s; its nodes are named in weft topology from-yaml %s", f.node, f.spec, f.spec)
		}
		first, end = id, id+1
	}
	var all []graphPlan
	for id := first; id < end; id++ {
		p, err := planOf(g, id)
		if err != nil {
			return err
		}
		if f.language == "json" {
			all = append(all, p)
			continue
		}
		mark := "#"
		if f.language == "frr" {
			mark = "!"
		}
		if f.node == "" {
			fmt.Fprintf(w, "%s ---- %s ----\n", mark, p.Node)
		}
		switch {
		case f.language == "iproute2":
			printLines(w, "", p.Commands())
		case p.Unplanned != "":
			return errors.New(p.Unplanned)
		case p.FRR == "":
			return usagef("--node %s: is a host; name a switch", p.Node)
		case f.language == "frr":
			printFRR(w, p)
		default:
			if err := printSONiC(w, p); err != nil {
				return err
			}
		}
	}
	switch {
	case f.language != "json":
		return nil
	case f.node != "":
		return printJSON(w, all[0])
	}
	return printJSON(w, all)
}

func planOf(g *graph.Graph, id graph.NodeID) (p graphPlan, err error) {
	if p.NodePlan, err = fabric.PlanGraph(g, id); err != nil {
		return p, err
	}
	if g.Node(id).Tier == 0 {
		return p, nil
	}
	if p.FRR, err = switchconf.FRR(g, id, switchconf.Options{}); err != nil {
		p.Unplanned = err.Error()
		return p, nil
	}
	sonic, err := switchconf.SONiC(g, id)
	p.SONiC, p.StaticSIDs = &sonic, switchconf.StaticSIDs(g, id)
	return p, err
}

func printLines(w io.Writer, before string, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(w, strings.TrimRight(before+l, " "))
	}
}

// printFRR prints FRR's configuration, and as comments what FRR does not do.
func printFRR(w io.Writer, p graphPlan) {
	fmt.Fprint(w, p.FRR)
	commands := p.Decapsulation()
	if len(commands) == 0 {
		return
	}
	fmt.Fprintln(w, "! FRR does not decapsulate. On Linux these commands do, besides the settings that")
	fmt.Fprintln(w, "! weft plan --for iproute2 prints:")
	printLines(w, "!   ", commands)
	if len(p.StaticSIDs) > 0 {
		fmt.Fprintln(w, "! FRR 10.3 and later set SIDs themselves, for switches whose hardware forwards. For these")
		fmt.Fprintln(w, "! replace segment-routing above by:")
		printLines(w, "!   ", p.StaticSIDs)
	}
}

// printSONiC prints a script for a SONiC switch.
func printSONiC(w io.Writer, p graphPlan) error {
	db, err := json.MarshalIndent(p.SONiC.ConfigDB, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, sonicScript, db, strings.Join(p.SONiC.VTYSH, "\n"))
	return nil
}

const sonicScript = `# CONFIG_DB. Ports must have SONiC's names, and BGP sessions by port need a recent image.
# SONiC decapsulates IP-in-IP at the first addresses of Loopback0, IPv6 as well.
cat > weft.json <<'END'
%s
END
config load weft.json -y && config save -y
# CONFIG_DB has no words for the rest. Run it again when the container bgp has been restarted.
vtysh <<'END'
configure terminal
%s
end
END
`
