package bgp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weft/topology/graph"
)

// spec makes nodes and links of what is known.
func (b *builder) spec() (s graph.Spec) {
	names := make(map[uint32][]string)
	s.Nodes = append(s.Nodes, graph.Node{Name: b.self.Name, Addresses: b.self.Addresses})
	b.addSharing(&s)
	for _, number := range slices.Sorted(maps.Keys(b.ases)) {
		for _, n := range b.nodes(b.ases[number]) {
			s.Nodes = append(s.Nodes, n)
			names[number] = append(names[number], n.Name)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(b.ases)) {
		if b.ases[number].edge {
			for _, name := range names[number] {
				s.Links = append(s.Links, graph.Link{Ends: [2]string{b.self.Name, name}})
			}
		}
	}
	links := slices.SortedFunc(maps.Keys(b.links), func(x, y [2]uint32) int {
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	})
	for _, l := range links {
		if low, high := b.ases[l[0]].tier, b.ases[l[1]].tier; low != high+1 && high != low+1 {
			b.guess("AS %d and AS %d are wired to each other, but are in tiers %d and %d; their link is left out", l[0], l[1], low, high)
			continue
		}
		for _, one := range names[l[0]] {
			for _, two := range names[l[1]] {
				s.Links = append(s.Links, graph.Link{Ends: [2]string{one, two}})
			}
		}
	}
	return s
}

// addSharing adds a host without addresses for edge switches that share racks: in a Graph it is
// hosts that show this.
func (b *builder) addSharing(s *graph.Spec) {
	seen := make(map[string]bool)
	for _, p := range slices.SortedFunc(maps.Keys(b.owners), comparePrefixes) {
		owners := slices.Sorted(slices.Values(b.owners[p]))
		if key := fmt.Sprint(owners); len(owners) < 2 || seen[key] {
			continue
		} else {
			seen[key] = true
		}
		name := fmt.Sprintf("others%d", len(seen))
		s.Nodes = append(s.Nodes, graph.Node{Name: name})
		for _, number := range owners {
			s.Links = append(s.Links, graph.Link{Ends: [2]string{name, NameOf(number)}})
		}
	}
}

// NameOf is what the switch of an AS is called.
func NameOf(as uint32) string { return fmt.Sprintf("as%d", as) }

// nodes returns the switches of an AS.
func (b *builder) nodes(a *as) []graph.Node {
	name := NameOf(a.number)
	switch {
	case a.tier > graph.MaxTier:
		b.guess("AS %d is %d links away from any edge switch; it is left out", a.number, a.tier-1)
		return nil
	case a.tier > 1 && len(a.addresses) == 0:
		b.guess("AS %d announces no address of its own (a /32 or /128); packets cannot bounce there, and it is left out", a.number)
		return nil
	case a.tier == 1:
		return []graph.Node{{Name: name, Tier: 1, Addresses: b.free(a.addresses), Prefixes: b.racks(a), AS: a.number}}
	case len(a.racks) > 0:
		b.guess("AS %d passes on what others announce, so its prefixes %v are no racks", a.number, a.racks)
	}
	var each [2][]netip.Addr // by family
	for _, addr := range a.addresses {
		f := addr.BitLen() / 128
		each[f] = append(each[f], addr)
	}
	n := max(len(each[0]), len(each[1]))
	if !a.shared || n < 2 {
		return []graph.Node{{Name: name, Tier: a.tier, Addresses: b.free(a.addresses), AS: a.number}}
	}
	b.guess("AS %d is that of %d switches, each with one of the addresses %v and wired as the others are", a.number, n, a.addresses)
	list := make([]graph.Node, n)
	for i := range list {
		list[i] = graph.Node{Name: fmt.Sprintf("%s-%d", name, i+1), Tier: a.tier, AS: a.number}
		for _, addrs := range each {
			if i < len(addrs) {
				list[i].Addresses = append(list[i].Addresses, addrs[i])
			}
		}
	}
	return list
}

// free returns addresses that are not this host's: an edge switch may announce those.
func (b *builder) free(list []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(list), func(a netip.Addr) bool { return slices.Contains(b.self.Addresses, a) })
}

// racks returns the prefixes of an edge switch that do not lie within another one's.
func (b *builder) racks(a *as) (list []netip.Prefix) {
	for _, p := range a.racks {
		inside := false
		for bits := p.Bits() - 1; bits > 0; bits-- {
			wider, _ := p.Addr().Prefix(bits)
			if owners := b.owners[wider]; len(owners) > 0 && b.ases[owners[0]].tier == 1 {
				if !slices.Contains(owners, a.number) {
					b.guess("%v of AS %d lies within %v of AS %d; it is left out", p, a.number, wider, owners[0])
				}
				inside = true
				break
			}
		}
		if !inside {
			list = append(list, p)
		}
	}
	return list
}
