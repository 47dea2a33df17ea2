package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/topology"
)

// FailureMode is how a link of a lab has failed.
type FailureMode string

// The failure modes, from the mildest to the one that hides the others.
const (
	// FailSilentData drops everything but the switches' own messages. Only a check from end
	// to end finds it.
	FailSilentData FailureMode = "silent-data"
	// FailSilent drops everything while both ends see the link up.
	FailSilent FailureMode = "silent"
	// FailLoud takes the link down: both ends see it at once.
	FailLoud FailureMode = "loud"
)

// failureModes is in the order of their strength.
var failureModes = []FailureMode{"", FailSilentData, FailSilent, FailLoud}

func (m FailureMode) silent() bool { return m == FailSilent || m == FailSilentData }

func (m FailureMode) check() error {
	if m == "" || !slices.Contains(failureModes, m) {
		return fmt.Errorf("failure mode %q: must be %s, %s or %s", m, FailLoud, FailSilent, FailSilentData)
	}
	return nil
}

// failures is what has failed, by the canonical names of links and nodes.
type failures map[string]FailureMode

// failureTarget is a link, or a node with all its links.
type failureTarget struct {
	name  string // canonical: LOWER-UPPER, or the node's
	links []topology.LinkID
}

// target finds what people call a link (e0.0-a0.2, in either order) or a node.
func (c Config) target(s string) (failureTarget, error) {
	if g, ok := c.plant().(graphPlant); ok {
		return c.graphTarget(g, s)
	}
	if strings.Contains(s, "-") {
		k, err := c.Topology.LinkByName(s)
		if err != nil {
			return failureTarget{}, err
		}
		if !c.builds(k.A) || !c.builds(k.B) {
			return failureTarget{}, fmt.Errorf("link %s: lab %s was built without it", s, c.Name)
		}
		return failureTarget{c.Topology.LinkName(k.ID), []topology.LinkID{k.ID}}, nil
	}
	n, err := c.Topology.Lookup(s)
	if err != nil {
		return failureTarget{}, err
	}
	if !c.builds(n.ID) {
		return failureTarget{}, fmt.Errorf("node %s: lab %s was built without it", n.Name, c.Name)
	}
	return c.nodeTarget(n), nil
}

// graphTarget is target in a graph, where nodes' names may have dashes.
func (c Config) graphTarget(g graphPlant, s string) (failureTarget, error) {
	if n, err := g.Lookup(s); err == nil {
		return c.nodeTarget(n), nil
	}
	links := g.linksNamed(s)
	switch {
	case len(links) == 1:
		return failureTarget{g.LinkName(links[0]), links}, nil
	case len(links) > 1: // a bundle
		k := g.Link(links[0])
		return failureTarget{g.Node(k.A).Name + "-" + g.Node(k.B).Name, links}, nil
	}
	return failureTarget{}, fmt.Errorf("%q: the graph has no such node or link; links are called by their ends, such as %s, or with a port, NODE:PORT", s, g.LinkName(0))
}

func (c Config) nodeTarget(n topology.Node) failureTarget {
	t := failureTarget{name: n.Name}
	for _, p := range c.ports(n.ID) {
		t.links = append(t.links, p.Link)
	}
	return t
}

// modes returns how each link has failed that has: a link fails by itself, or
// with a node, and the strongest counts.
func (f failures) modes(c Config) (map[topology.LinkID]FailureMode, error) {
	modes := make(map[topology.LinkID]FailureMode)
	for name, mode := range f {
		t, err := c.target(name)
		if err != nil {
			return nil, err
		}
		for _, l := range t.links {
			if slices.Index(failureModes, mode) > slices.Index(failureModes, modes[l]) {
				modes[l] = mode
			}
		}
	}
	return modes, nil
}

// transition is a link that changes from one mode to another; "" is up.
type transition struct {
	link     topology.LinkID
	from, to FailureMode
}

// transitions returns what must be done, in the order of the links.
func (c Config) transitions(before, after failures) ([]transition, error) {
	from, err := before.modes(c)
	if err != nil {
		return nil, err
	}
	to, err := after.modes(c)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(from)
	maps.Copy(all, to)
	var steps []transition
	for _, l := range slices.Sorted(maps.Keys(all)) {
		if from[l] != to[l] {
			steps = append(steps, transition{l, from[l], to[l]})
		}
	}
	return steps, nil
}
