package topology

import (
	"fmt"
	"strings"
)

// LinkName returns a link's name: the names of its ends, the lower one first,
// such as e0.0-a0.2. LinkByName reads it.
func (t *Topology) LinkName(l LinkID) string {
	link := t.Link(l)
	return t.nameOf(link.A) + "-" + t.nameOf(link.B)
}

// LinkByName finds the link between two nodes, in either order, joined by a
// hyphen: e0.0-a0.2, 3.1-a0.2, 10.0.0.1-10.0.2.1. Nodes are called as Lookup
// allows.
func (t *Topology) LinkByName(s string) (Link, error) {
	a, b, ok := strings.Cut(s, "-")
	if !ok {
		return Link{}, fmt.Errorf("link %q: name its two ends with a hyphen between, such as %s", s, t.LinkName(0))
	}
	one, err := t.Lookup(a)
	if err != nil {
		return Link{}, fmt.Errorf("link %q: %w", s, err)
	}
	two, err := t.Lookup(b)
	if err != nil {
		return Link{}, fmt.Errorf("link %q: %w", s, err)
	}
	if one.Layer > two.Layer {
		one, two = two, one
	}
	l, ok := t.between(one.ID, two.ID)
	if !ok {
		return Link{}, fmt.Errorf("link %q: %s and %s are not wired to each other in %s", s, one.Name, two.Name, t.spec)
	}
	return t.Link(l), nil
}

// between returns the link from a node up to another.
func (t *Topology) between(a, b NodeID) (LinkID, bool) {
	if t.view != nil {
		return t.view.between(a, b)
	}
	low, high := t.position(a), t.position(b)
	switch {
	case low.layer == LayerHost && high.layer == LayerEdge:
		return t.hostLink(t.id(low)), low.pod == high.pod && low.sw == high.sw
	case low.layer == LayerEdge && high.layer == LayerAgg:
		return t.edgeLink(low.pod, low.sw, high.sw), low.pod == high.pod
	case low.layer == LayerAgg && high.layer == LayerCore:
		return t.coreLink(low.pod, low.sw, high.sw), t.id(position{layer: LayerCore, pod: low.sw, sw: high.sw}) == t.id(high)
	}
	return 0, false
}
