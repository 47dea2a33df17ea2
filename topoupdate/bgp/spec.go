package bgp

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/topology/graph"
)

// Host is what the host that hears the routes knows of itself.
type Host struct {
	Name      string
	Addresses []netip.Addr
}

// Spec returns the graph that the routes make up, the host itself included, and what it had
// to guess, a line each. A switch is called by its AS, such as as65001. It has the host
// routes (/32, /128) that its AS announces as its addresses. An edge switch is a neighbour,
// or announces prefixes and is on no shortest way to those of others; the prefixes are its
// racks. (Longer ways may lead through racks where a link is down, and so may the shortest
// one to a switch's own address.) Prefixes of links, /30
// and longer, are nobody's racks. Other switches without an address are left out, as
// packets cannot bounce there.
//
// Where several switches have one AS, and a neighbour sends several routes of one AS path,
// each address of that AS is taken for a switch, and all of them for wired alike.
func (t *Table) Spec(self Host) (s graph.Spec, guesses []string) {
	b := builder{self: self, ases: make(map[uint32]*as), links: make(map[[2]uint32]bool), owner: make(map[netip.Prefix]uint32)}
	keys := t.keys()
	shortest := make(map[netip.Prefix]int)
	for _, k := range keys {
		if n, ok := shortest[k.Prefix]; !ok || len(t.routes[k].ASPath) < n {
			shortest[k.Prefix] = len(t.routes[k].ASPath)
		}
	}
	for _, k := range keys {
		path := t.routes[k].ASPath
		b.add(k, path, len(path) == shortest[k.Prefix])
	}
	b.setTiers()
	return b.spec(), b.guesses
}

// as is what is known of an AS.
type as struct {
	number    uint32
	edge      bool // a neighbour
	transit   bool // is between others on a shortest way
	addresses []netip.Addr
	racks     []netip.Prefix
	tier      int // 0: none
	shared    bool
}

type builder struct {
	self    Host
	ases    map[uint32]*as
	links   map[[2]uint32]bool // the lesser number first
	owner   map[netip.Prefix]uint32
	last    Key // of the route before
	path    []uint32
	guesses []string
}

func (b *builder) guess(format string, args ...any) {
	b.guesses = append(b.guesses, fmt.Sprintf(format, args...))
}

func (b *builder) as(number uint32) *as {
	a, ok := b.ases[number]
	if !ok {
		a = &as{number: number}
		b.ases[number] = a
	}
	return a
}

// add takes the routes in the order of their keys.
func (b *builder) add(k Key, path []uint32, shortest bool) {
	origin := path[len(path)-1]
	b.as(path[0]).edge = true
	for i, number := range path {
		a := b.as(number)
		a.transit = a.transit || shortest && !k.Prefix.IsSingleIP() && i > 0 && i < len(path)-1
		if i > 0 {
			b.links[[2]uint32{min(path[i-1], number), max(path[i-1], number)}] = true
		}
		// The same AS path twice leads by different switches.
		if same := k.Prefix == b.last.Prefix && k.Neighbor == b.last.Neighbor && slices.Equal(path, b.path); same && i > 0 && i < len(path)-1 {
			a.shared = true
		}
	}
	b.last, b.path = k, path
	if first, ok := b.owner[k.Prefix]; ok {
		if first != origin {
			b.guess("%v is announced by AS %d and AS %d; it is taken for the former's", k.Prefix, first, origin)
		}
		return
	}
	for _, own := range b.self.Addresses {
		if k.Prefix.Contains(own) && len(path) > 1 {
			b.guess("%v of AS %d has this host's own address %v; it is left out", k.Prefix, origin, own)
			return
		}
	}
	b.owner[k.Prefix] = origin
	switch a := b.as(origin); {
	case k.Prefix.IsSingleIP():
		a.addresses = append(a.addresses, k.Prefix.Addr())
	case k.Prefix.Bits() < k.Prefix.Addr().BitLen()-2:
		a.racks = append(a.racks, k.Prefix)
	}
}

// setTiers gives edge switches tier 1, and others the number of links to the next edge
// switch and 1.
func (b *builder) setTiers() {
	next := make(map[uint32]bool)
	for number, a := range b.ases {
		if a.edge || len(a.racks) > 0 && !a.transit {
			next[number] = true
		}
	}
	for tier := 1; len(next) > 0; tier++ {
		for number := range next {
			b.ases[number].tier = tier
		}
		after := make(map[uint32]bool)
		for l := range b.links {
			for i, number := range l {
				if other := l[1-i]; next[number] && b.ases[other].tier == 0 {
					after[other] = true
				}
			}
		}
		next = after
	}
}
