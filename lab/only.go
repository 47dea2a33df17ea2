package lab

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"weft/fabric"
	"weft/topology"
	"weft/topology/graph"
)

// builds reports whether a node is part of the lab.
func (c Config) builds(id topology.NodeID) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, id)
}

// nodes yields those that are built, in the order of their numbers.
func (c Config) nodes() iter.Seq[topology.Node] {
	return func(yield func(topology.Node) bool) {
		for n := range c.plant().Nodes() {
			if c.builds(n.ID) && !yield(n) {
				return
			}
		}
	}
}

func (c Config) numNodes() int {
	if len(c.Only) > 0 {
		return len(c.Only)
	}
	return c.plant().NumNodes()
}

// ports returns those of a node's ports that have another end.
func (c Config) ports(id topology.NodeID) []topology.Port {
	absent := func(p topology.Port) bool { return !c.builds(p.Peer) }
	return slices.DeleteFunc(c.plant().Ports(id), absent)
}

// plan is that of a node to which all links to what is not built are down, and
// which has no ports for them.
func (c Config) plan(id topology.NodeID) (fabric.NodePlan, error) {
	if c.Graph != nil {
		return fabric.PlanGraph(c.Graph, graph.NodeID(id))
	}
	opts := fabric.Options{Routing: c.Routing, SRv6: c.SRv6, Groups: fabric.GroupsOf(c.Balance)}
	if len(c.Only) == 0 {
		return fabric.Plan(c.Topology, id, opts)
	}
	var absent []topology.LinkID
	for l := range c.Topology.Links() {
		if !c.builds(l.A) || !c.builds(l.B) {
			absent = append(absent, l.ID)
		}
	}
	p, err := fabric.Plan(c.Topology.Without(absent...), id, opts)
	if err != nil {
		return p, err
	}
	var missing []string
	for _, port := range c.Topology.Ports(id) {
		if !c.builds(port.Peer) {
			missing = append(missing, p.Ports[port.Index].Name)
		}
	}
	return p.Without(missing...), nil
}

// checkOnly makes sure that the nodes exist, and that hosts have a link: a
// host's address is on it.
func (c Config) checkOnly() error {
	for _, id := range c.Only {
		if !c.Topology.Valid(id) {
			return fmt.Errorf("lab %s: node %d of Only is not in %s", c.Name, id, c.Topology)
		}
		if n := c.Topology.Node(id); n.Layer == topology.LayerHost && len(c.ports(id)) == 0 {
			return fmt.Errorf("lab %s: Only has host %s without its switch %s: add that", c.Name, n.Name, c.Topology.Node(c.Topology.EdgeOf(id)).Name)
		}
	}
	return nil
}

// onlyNames is Only as the lab's state has it, "" for all nodes.
func (c Config) onlyNames() string {
	var names []string
	for _, id := range c.Only {
		names = append(names, c.Topology.Node(id).Name)
	}
	return strings.Join(names, ",")
}

func parseOnly(t *topology.Topology, names string) (only []topology.NodeID, err error) {
	for name := range strings.SplitSeq(names, ",") {
		if name == "" {
			continue
		}
		n, err := t.Lookup(name)
		if err != nil {
			return nil, err
		}
		only = append(only, n.ID)
	}
	return only, nil
}
