package failover

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weft/topology"
)

// Pair is a sender and a receiver of packets, both hosts. The acknowledgements
// of a stream are of the pair the other way round.
type Pair struct{ Src, Dst topology.NodeID }

// Hole says which packets a failure swallows. It follows from the topology, not
// from where packets were seen to end. It is immutable.
type Hole struct {
	Down    []topology.LinkID
	bounces []netip.Addr                 // of paths that are dead for one pair at least, ascending
	dead    map[course][]topology.LinkID // paths that were live, and are not any more, with what is down of each
	others  map[course]struct{}          // live paths over the same bouncing addresses, of pairs that do not need what is down
}

// NewHole computes the hole that the failure of links of t leaves for the given
// pairs.
func NewHole(t *topology.Topology, pairs []Pair, down ...topology.LinkID) *Hole {
	h := &Hole{Down: down, dead: make(map[course][]topology.LinkID), others: make(map[course]struct{})}
	after := t.Without(down...)
	bounces := make(map[netip.Addr]struct{})
	left := make(map[course]struct{})
	for _, p := range pairs {
		was, is := t.Paths(p.Src, p.Dst), after.Paths(p.Src, p.Dst)
		for _, n := range was.Live {
			c := course{p, was.Addr(n)}
			if slices.Contains(is.Live, n) {
				left[c] = struct{}{}
				continue
			}
			for _, l := range was.Path(n).Links {
				if slices.Contains(down, l) {
					h.dead[c] = append(h.dead[c], l)
				}
			}
			bounces[c.bounce] = struct{}{}
		}
	}
	for c := range left {
		if _, ok := bounces[c.bounce]; ok {
			h.others[c] = struct{}{}
		}
	}
	h.bounces = slices.SortedFunc(maps.Keys(bounces), netip.Addr.Compare)
	return h
}

// pairsOf are those of a permutation, with the acknowledgements'.
func pairsOf(to []topology.NodeID) []Pair {
	seen := make(map[Pair]bool)
	var pairs []Pair
	add := func(p Pair) {
		if !seen[p] {
			seen[p] = true
			pairs = append(pairs, p)
		}
	}
	for i, j := range to {
		add(Pair{topology.NodeID(i), j})
		add(Pair{j, topology.NodeID(i)})
	}
	return pairs
}

// linksOf are the links that a failure of a link or a node takes down.
func linksOf(t *topology.Topology, target string) ([]topology.LinkID, error) {
	if n, err := t.Lookup(target); err == nil {
		var links []topology.LinkID
		for _, p := range t.Ports(n.ID) {
			links = append(links, p.Link)
		}
		return links, nil
	}
	l, err := t.LinkByName(target)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a node nor a link of %v: %w", target, t, err)
	}
	return []topology.LinkID{l.ID}, nil
}
