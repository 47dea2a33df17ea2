package bgp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weft/topology/graph"
)

// sharing tells whom of those who claim a rack's prefix besides the first one may be another
// of its edge switches. Either both were before, or different switches tell of both, from
// equally far. In the host's own rack the first is a neighbour, and the others are farther
// away: there those are taken that are told of at the beginning.
func (b *builder) sharing(all []claim, own bool) (list []claim) {
	first := all[0]
	for _, c := range all[1:] {
		near := c.length == first.length || own && len(b.t.last.owners[c.prefix]) == 0
		if len(list) < maxSharing-1 && (c.known && first.known || c.sure && first.sure && near) {
			list = append(list, c)
		}
	}
	return list
}

// settleSharing has edge switches share the racks that are left. The addresses that these
// announce together are hosts'. What others claim is in vain.
func (b *builder) settleSharing() {
	for _, p := range slices.SortedFunc(maps.Keys(b.shares), comparePrefixes) {
		list := b.shares[p]
		first := b.ases[list[0].as]
		for _, c := range list[1:] {
			a := b.ases[c.as]
			if a.tier != 1 || first.tier != 1 || !slices.Contains(first.racks, p) {
				b.refuse(p, c, list[0])
				continue
			}
			a.racks = append(a.racks, p)
			if list[0].known && !c.known {
				b.guess("%v is announced by AS %d and AS %d; the latter is taken for another edge switch of the rack", p, first.number, c.as)
			}
			b.doubles = slices.DeleteFunc(b.doubles, func(d dispute) bool {
				if !d.prefix.IsSingleIP() || !p.Contains(d.prefix.Addr()) || !isBetween(d, first.number, c.as) {
					return false
				}
				of := b.ases[d.of]
				for f := range of.addresses {
					of.addresses[f] = slices.DeleteFunc(of.addresses[f], func(x claim) bool { return x.prefix == d.prefix })
				}
				return true
			})
		}
	}
}

// has reports whether a rack's prefix is an AS's, or may be shared with it.
func (b *builder) has(p netip.Prefix, a, first *as) bool {
	return a == first || slices.ContainsFunc(b.shares[p], func(c claim) bool { return c.as == a.number })
}

// isBetween reports whether a dispute is between two AS numbers.
func isBetween(d dispute, x, y uint32) bool {
	return d.as == x && d.of == y || d.as == y && d.of == x
}

// refuse takes note that an AS claims a prefix in vain.
func (b *builder) refuse(p netip.Prefix, c, first claim) {
	if c.length > 1 && slices.ContainsFunc(b.self.Addresses, p.Contains) {
		b.stolen = append(b.stolen, dispute{prefix: p, as: c.as})
		return
	}
	b.doubles = append(b.doubles, dispute{p, c.as, first.as})
}

// addSharing adds a host without addresses for edge switches that share racks: in a Graph it is
// hosts that show this.
func addSharing(s *graph.Spec) {
	owners := make(map[netip.Prefix][]string)
	for _, n := range s.Nodes {
		for _, p := range n.Prefixes {
			owners[p] = append(owners[p], n.Name)
		}
	}
	seen := make(map[string]bool)
	for _, p := range slices.SortedFunc(maps.Keys(owners), comparePrefixes) {
		key := fmt.Sprint(owners[p])
		if len(owners[p]) < 2 || seen[key] {
			continue
		}
		seen[key] = true
		name := fmt.Sprintf("others%d", len(seen))
		s.Nodes = append(s.Nodes, graph.Node{Name: name})
		for _, edge := range owners[p] {
			s.Links = append(s.Links, graph.Link{Ends: [2]string{name, edge}})
		}
	}
}

// NameOf is what the switch of an AS is called.
func NameOf(as uint32) string { return fmt.Sprintf("as%d", as) }
