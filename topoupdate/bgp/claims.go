package bgp

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weft/topology/graph"
)

// taken is what the Spec before was made of.
type taken struct {
	owners map[netip.Prefix][]uint32 // of racks, addresses and locators: the AS numbers
	tiers  map[uint32]int            // of AS numbers
	links  map[[2]uint32]bool        // of this and earlier ones, up to maxLinks
}

// take returns what a Spec is made of.
func (b *builder) take(s graph.Spec) taken {
	k := taken{make(map[netip.Prefix][]uint32), make(map[uint32]int), b.t.last.links}
	if k.links == nil || len(k.links) > maxLinks {
		k.links = make(map[[2]uint32]bool)
	}
	for l := range b.links {
		if b.ases[l[0]].kept && b.ases[l[1]].kept {
			k.links[l] = true
		}
	}
	for _, n := range s.Nodes {
		if n.AS == 0 {
			continue // hosts
		}
		k.tiers[n.AS] = n.Tier
		for _, a := range n.Addresses {
			k.owners[netip.PrefixFrom(a, a.BitLen())] = []uint32{n.AS}
		}
		for _, p := range n.Prefixes {
			k.owners[p] = append(k.owners[p], n.AS)
		}
		if !n.SIDs.None() {
			k.owners[n.SIDs.Node] = []uint32{n.AS}
		}
	}
	return k
}

// claim is that an AS has a prefix.
type claim struct {
	prefix netip.Prefix
	as     uint32
	known  bool // it had it before
	sure   bool // different switches say so
	length int  // of the shortest path
}

// compareClaims puts first what is believed rather.
func compareClaims(a, b claim) int {
	return cmp.Or(yes(a.known, b.known), yes(a.sure, b.sure), cmp.Compare(a.length, b.length), comparePrefixes(a.prefix, b.prefix), cmp.Compare(a.as, b.as))
}

// yes puts true first.
func yes(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// dispute is a prefix that an AS claims in vain.
type dispute struct {
	prefix netip.Prefix
	as     uint32
	of     uint32 // who has it
}

func compareDisputes(a, b dispute) int {
	return cmp.Or(comparePrefixes(a.prefix, b.prefix), cmp.Compare(a.as, b.as))
}

// claim gives a prefix to an AS.
func (b *builder) claim(p netip.Prefix, routes []route) {
	var all []claim
	common := make([][]uint32, 0, 1)
	for _, r := range routes {
		if !b.onLink(r) {
			continue
		}
		path := r.path.list
		origin := path[len(path)-1]
		i := slices.IndexFunc(all, func(c claim) bool { return c.as == origin })
		before := b.before(path, len(path)-1)
		if i < 0 {
			all = append(all, claim{prefix: p, as: origin, known: b.known(p, origin), length: len(path)})
			common = append(common, slices.Clone(before))
			continue
		}
		all[i].length = min(all[i].length, len(path))
		common[i] = narrow(common[i], before, false)
	}
	for i := range all {
		all[i].sure = len(common[i]) == 0
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, compareClaims)
	own := slices.ContainsFunc(b.self.Addresses, p.Contains)
	if own { // a neighbour has the host's own rack
		slices.SortStableFunc(all, func(x, y claim) int { return yes(x.length == 1, y.length == 1) })
		if all[0].length > 1 {
			for _, c := range all {
				b.refuse(p, c, c)
			}
			return
		}
	}
	var share []claim
	if b.isRack(p) {
		share = b.sharing(all, own)
	}
	for _, c := range all[1:] {
		if !slices.Contains(share, c) {
			b.refuse(p, c, all[0])
		}
	}
	b.give(all[0])
	b.sure[p] = all[0].sure
	if len(share) > 0 {
		b.shares[p] = append(all[:1:1], share...)
	}
	for _, c := range share {
		b.give(c)
	}
}

// isRack reports whether a prefix may be a rack's.
func (b *builder) isRack(p netip.Prefix) bool {
	block := b.t.config.SIDBlock
	return p.Bits() < p.Addr().BitLen()-2 && !(block.IsValid() && block.Overlaps(p))
}

// known reports whether the Spec before was made of a prefix, as this AS's.
func (b *builder) known(p netip.Prefix, as uint32) bool {
	return slices.Contains(b.t.last.owners[p], as)
}

// give has an AS have a prefix.
func (b *builder) give(c claim) {
	p, a := c.prefix, b.as(c.as)
	bits := p.Addr().BitLen()
	if block := b.t.config.SIDBlock; block.IsValid() && block.Overlaps(p) {
		if p.Bits() == graph.LocatorBits {
			a.locators = append(a.locators, c)
		}
		return
	}
	switch {
	case p.IsSingleIP():
		if !slices.Contains(b.self.Addresses, p.Addr()) { // an edge switch may announce those
			a.addresses[bits/128] = append(a.addresses[bits/128], c)
		}
	case b.isRack(p):
		a.racks = append(a.racks, p)
		a.rooted = a.rooted || c.sure
	}
}

// tellClaims tells of what is claimed in vain.
func (b *builder) tellClaims() {
	slices.SortFunc(b.stolen, compareDisputes)
	for _, d := range b.stolen {
		b.guess("%v of AS %d has this host's own address; it is left out", d.prefix, d.as)
	}
	slices.SortFunc(b.doubles, compareDisputes)
	for _, d := range b.doubles {
		b.guess("%v is announced by AS %d and AS %d; it is taken for the former's", d.prefix, d.of, d.as)
	}
	for _, hop := range slices.SortedFunc(maps.Keys(b.nowhere), netip.Addr.Compare) {
		b.guess("the next hop %v is not the neighbor's; routes with it are left out", hop)
	}
}

// settleRacks sees to it that no rack's prefix, and no switch's address, lies within
// another's rack. The wider one stays, unless it is an aggregate.
func (b *builder) settleRacks() {
	owner := make(map[netip.Prefix]*as)
	var racks, all []netip.Prefix
	var lengths [2][129]bool
	for p, list := range b.shares {
		for _, c := range list[1:] { // settleSharing gives it to them again
			a := b.ases[c.as]
			a.racks = slices.DeleteFunc(a.racks, func(q netip.Prefix) bool { return p == q })
		}
	}
	for _, a := range b.ases {
		for _, list := range a.addresses {
			for _, c := range list {
				owner[c.prefix] = a
				all = append(all, c.prefix)
			}
		}
		if a.tier != 1 {
			continue
		}
		for _, p := range a.racks {
			owner[p] = a
			racks = append(racks, p)
			lengths[p.Addr().BitLen()/128][p.Bits()] = true
		}
		a.racks = nil
	}
	inside := make(map[netip.Prefix][]netip.Prefix)
	for _, p := range append(all, racks...) {
		for bits := p.Bits() - 1; bits > 0; bits-- {
			if !lengths[p.Addr().BitLen()/128][bits] {
				continue
			}
			if wider, _ := p.Addr().Prefix(bits); owner[wider] != nil {
				inside[wider] = append(inside[wider], p)
			}
		}
	}
	slices.SortFunc(racks, func(p, q netip.Prefix) int { return cmp.Or(cmp.Compare(p.Bits(), q.Bits()), comparePrefixes(p, q)) })
	for _, p := range racks { // the widest first
		a := owner[p]
		if a == nil {
			continue
		}
		within := slices.DeleteFunc(inside[p], func(q netip.Prefix) bool { return owner[q] == nil || q.IsSingleIP() && b.has(p, owner[q], a) })
		slices.SortFunc(within, comparePrefixes)
		if b.merges(p, a, within, owner) {
			b.guess("%v of AS %d holds what was there before, or is of others, such as %v of AS %d; it is no rack", p, a.number, within[0], owner[within[0]].number)
			owner[p] = nil
			continue
		}
		a.racks = append(a.racks, p)
		for _, q := range within {
			if !b.has(p, owner[q], a) {
				b.guess("%v of AS %d lies within %v of AS %d; it is left out", q, owner[q].number, p, a.number)
			}
			owner[q] = nil
		}
	}
	for _, a := range b.ases {
		for f := range a.addresses {
			a.addresses[f] = slices.DeleteFunc(a.addresses[f], func(c claim) bool { return owner[c.prefix] == nil })
		}
	}
}

// merges reports whether a prefix is an aggregate of what several switches have, or comes
// after what was there before.
func (b *builder) merges(p netip.Prefix, a *as, within []netip.Prefix, owner map[netip.Prefix]*as) bool {
	known := b.known(p, a.number) || a.edge
	var others []uint32
	for _, q := range within {
		o := owner[q]
		if !known && b.known(q, o.number) {
			return true
		}
		if o != a && b.sure[q] && !slices.Contains(others, o.number) {
			others = append(others, o.number)
		}
		if len(others) > 1 {
			return true
		}
	}
	return false
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
