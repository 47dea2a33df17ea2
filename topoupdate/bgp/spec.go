package bgp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weft/topology/graph"
)

// keep decides which switches and racks there is place for. First come neighbours, then
// those of which different switches know, then those that were there before. A switch is
// wired to one below that is kept.
func (b *builder) keep() {
	for _, number := range slices.Sorted(maps.Keys(b.ases)) {
		b.order = append(b.order, b.ases[number])
	}
	slices.SortStableFunc(b.order, func(x, y *as) int {
		return cmp.Or(yes(x.edge, y.edge), yes(x.sure(), y.sure()), yes(b.t.last.tiers[x.number] > 0, b.t.last.tiers[y.number] > 0))
	})
	below := make(map[uint32][]uint32)
	for l := range b.links {
		low, high := l[0], l[1]
		if b.ases[low].tier > b.ases[high].tier {
			low, high = high, low
		}
		if b.ases[high].tier == b.ases[low].tier+1 {
			below[high] = append(below[high], low)
		}
	}
	switches, racks := 0, 0
	for _, a := range b.order {
		n := b.switches(a)
		switch {
		case a.tier == 0 || a.tier > graph.MaxTier:
		case n == 0:
			b.guess("AS %d announces no address of its own (a /32 or /128); packets cannot bounce there, and it is left out", a.number)
		case switches+n > maxSwitches:
			b.guess("there are more than %d switches; AS %d is left out", maxSwitches, a.number)
		default:
			switches += n
			a.kept = true
		}
		if !a.kept {
			continue
		}
		if a.tier == 1 {
			racks += b.keepRacks(a, maxRacks-racks)
		} else if len(a.racks) > 0 {
			slices.SortFunc(a.racks, comparePrefixes)
			b.guess("AS %d passes on what others announce, so its prefixes %v are no racks", a.number, a.racks[:min(len(a.racks), maxAddresses)])
		}
	}
	for tier := 2; tier <= graph.MaxTier; tier++ {
		for _, a := range b.order {
			if a.tier == tier {
				a.kept = a.kept && slices.ContainsFunc(below[a.number], func(n uint32) bool { return b.ases[n].kept })
			}
		}
	}
	for _, a := range b.order {
		if a.tier > graph.MaxTier {
			b.guess("AS %d is %d links away from any edge switch; it is left out", a.number, a.tier-1)
		}
	}
}

// keepRacks leaves an edge switch as many racks as there is place for, and first those that
// it had before. It returns their number.
func (b *builder) keepRacks(a *as, place int) int {
	slices.SortFunc(a.racks, func(p, q netip.Prefix) int {
		return cmp.Or(yes(b.known(p, a.number), b.known(q, a.number)), comparePrefixes(p, q))
	})
	most := min(maxRacksEach, place)
	if len(a.racks) > most {
		b.guess("AS %d has more prefixes than the %d that there is place for; %v and others are left out", a.number, most, a.racks[most])
		a.racks = a.racks[:most]
	}
	slices.SortFunc(a.racks, comparePrefixes)
	return len(a.racks)
}

// switches returns how many switches an AS is, 0 if it has no address and needs one.
func (b *builder) switches(a *as) int {
	for f := range a.addresses {
		slices.SortFunc(a.addresses[f], compareClaims)
	}
	slices.SortFunc(a.locators, compareClaims)
	n := max(len(a.addresses[0]), len(a.addresses[1]))
	switch {
	case a.tier == 1:
		return 1
	case a.shared:
		return min(n, maxSwitchesOfAS)
	}
	return min(n, 1)
}

// spec makes nodes and links of what is kept.
func (b *builder) spec() (s graph.Spec) {
	names := make(map[uint32][]string)
	s.Nodes = append(s.Nodes, graph.Node{Name: b.self.Name, Addresses: slices.Clone(b.self.Addresses)})
	for _, number := range slices.Sorted(maps.Keys(b.ases)) {
		a := b.ases[number]
		if !a.kept {
			continue
		}
		for _, n := range b.nodes(a) {
			s.Nodes = append(s.Nodes, n)
			names[number] = append(names[number], n.Name)
		}
		if a.edge {
			s.Links = append(s.Links, graph.Link{Ends: [2]string{b.self.Name, names[number][0]}})
		}
	}
	links := slices.SortedFunc(maps.Keys(b.links), compareLinks)
	fastest := 0.0
	for _, l := range links {
		fastest = max(fastest, median(b.links[l].rates))
	}
	for _, l := range links {
		if !b.ases[l[0]].kept || !b.ases[l[1]].kept {
			continue
		}
		if low, high := b.ases[l[0]].tier, b.ases[l[1]].tier; low != high+1 && high != low+1 {
			b.guess("AS %d and AS %d are wired to each other, but are in tiers %d and %d; their link is left out", l[0], l[1], low, high)
			continue
		}
		rate := median(b.links[l].rates)
		if rate == 0 && fastest > 0 {
			rate = fastest
			b.guess("no rate of the link between AS %d and AS %d is known; it is taken for one of the fastest", l[0], l[1])
		}
		for _, one := range names[l[0]] {
			for _, two := range names[l[1]] {
				if len(s.Links) == maxLinks {
					b.guess("there are more than %d links; that between AS %d and AS %d is left out", maxLinks, l[0], l[1])
					break
				}
				s.Links = append(s.Links, graph.Link{Ends: [2]string{one, two}, Rate: rate})
			}
		}
	}
	addSharing(&s)
	return s
}

// median returns the middle one of some rates, 0 of none. It sorts them.
func median(rates []float64) float64 {
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// nodes returns the switches of an AS.
func (b *builder) nodes(a *as) []graph.Node {
	name := NameOf(a.number)
	n := b.switches(a)
	if n < 2 {
		node := graph.Node{Name: name, Tier: a.tier, AS: a.number}
		for _, list := range a.addresses {
			for i, c := range list {
				if i == maxAddresses {
					b.guess("AS %d has more than %d addresses of a family; %v and others are left out", a.number, maxAddresses, c.prefix.Addr())
					break
				}
				node.Addresses = append(node.Addresses, c.prefix.Addr())
			}
		}
		if a.tier == 1 {
			node.Prefixes = a.racks
		}
		if len(a.locators) > 0 {
			node.SIDs.Node = a.locators[0].prefix
		}
		if len(a.locators) > 1 {
			b.guess("AS %d announces several locators; %v and others are left out", a.number, a.locators[1].prefix)
		}
		return []graph.Node{node}
	}
	list := make([]graph.Node, n)
	for i := range list {
		list[i] = graph.Node{Name: fmt.Sprintf("%s-%d", name, i+1), Tier: a.tier, AS: a.number}
		for _, addrs := range a.addresses {
			if i < len(addrs) {
				list[i].Addresses = append(list[i].Addresses, addrs[i].prefix.Addr())
			}
		}
		if i < len(a.locators) {
			list[i].SIDs.Node = a.locators[i].prefix
		}
	}
	b.guess("AS %d is that of %d switches, each with one of its addresses, such as %v, and wired as the others are", a.number, n, list[0].Addresses)
	return list
}
