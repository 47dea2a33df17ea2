package failover

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weft/topology"
)

// pair is a sender and a receiver of packets, both hosts. The acknowledgements
// of a stream are of the pair the other way round.
type pair struct{ Src, Dst topology.NodeID }

// hole says which packets a failure swallows. It follows from the topology, not
// from where packets were seen to end. It is immutable.
type hole struct {
	Down    []topology.LinkID
	bounces []netip.Addr               // of paths that are dead for one pair at least, ascending
	dead    map[path][]topology.LinkID // paths that were live, and are not any more, with what is down of each
	others  map[path]struct{}          // live paths over the same bouncing addresses, of pairs that do not need what is down
}

// newHole computes the hole that the failure of links of t leaves for the given
// pairs.
func newHole(t *topology.Topology, pairs []pair, down ...topology.LinkID) *hole {
	h := &hole{Down: down, dead: make(map[path][]topology.LinkID), others: make(map[path]struct{})}
	after := t.Without(down...)
	bounces := make(map[netip.Addr]struct{})
	left := make(map[path]struct{})
	for _, p := range pairs {
		was, is := t.Paths(p.Src, p.Dst), after.Paths(p.Src, p.Dst)
		for _, n := range was.Live {
			c := path{p, was.Addr(n)}
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
func pairsOf(to []topology.NodeID) []pair {
	seen := make(map[pair]bool)
	var pairs []pair
	add := func(p pair) {
		if !seen[p] {
			seen[p] = true
			pairs = append(pairs, p)
		}
	}
	for i, j := range to {
		add(pair{topology.NodeID(i), j})
		add(pair{j, topology.NodeID(i)})
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
