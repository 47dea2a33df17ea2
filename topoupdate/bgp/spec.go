package bgp

import (
	"fmt"
	"maps"
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
// racks, of which several edge switches may have one. (Longer ways may lead through racks where a link is down, and so may the shortest
// one to a switch's own address.) Prefixes of links, /30
// and longer, are nobody's racks. Other switches without an address are left out, as
// packets cannot bounce there.
//
// Where several switches have one AS, and a neighbour sends several routes of one AS path,
// each address of that AS is taken for a switch, and all of them for wired alike.
func (t *Table) Spec(self Host) (s graph.Spec, guesses []string) {
	b := builder{self: self, ases: make(map[uint32]*as), links: make(map[[2]uint32]bool), owners: make(map[netip.Prefix][]uint32)}
	keys := t.keys()
	shortest := make(map[netip.Prefix]int)
	b.shortest = shortest
	for _, k := range keys {
		if n, ok := shortest[k.Prefix]; !ok || len(t.routes[k].ASPath) < n {
			shortest[k.Prefix] = len(t.routes[k].ASPath)
		}
	}
	for _, k := range keys {
		path := t.routes[k].ASPath
		b.add(k, path)
	}
	b.setTiers()
	b.settleOwners()
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
	links   map[[2]uint32]bool        // the lesser number first
	owners  map[netip.Prefix][]uint32 // in the order of their routes
	last    Key                       // of the route before
	path    []uint32
	guesses []string

	shortest map[netip.Prefix]int // AS path
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
func (b *builder) add(k Key, path []uint32) {
	origin, shortest := path[len(path)-1], len(path) == b.shortest[k.Prefix]
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
	if slices.Contains(b.owners[k.Prefix], origin) {
		return
	}
	for _, own := range b.self.Addresses {
		// Where an edge switch of this host's says the same, others of its rack may.
		if k.Prefix.Contains(own) && len(path) > 1 && b.shortest[k.Prefix] > 1 {
			b.guess("%v of AS %d has this host's own address %v; it is left out", k.Prefix, origin, own)
			return
		}
	}
	b.owners[k.Prefix] = append(b.owners[k.Prefix], origin)
	switch a := b.as(origin); {
	case k.Prefix.IsSingleIP():
		a.addresses = append(a.addresses, k.Prefix.Addr())
	case k.Prefix.Bits() < k.Prefix.Addr().BitLen()-2:
		a.racks = append(a.racks, k.Prefix)
	}
}

// settleOwners finds what several have announced. A rack may have several edge switches. The
// addresses that these announce together are hosts'. All else is the first one's.
func (b *builder) settleOwners() {
	for _, p := range slices.SortedFunc(maps.Keys(b.owners), comparePrefixes) {
		owners := b.owners[p]
		if len(owners) < 2 {
			continue
		}
		edges := !slices.ContainsFunc(owners, func(number uint32) bool { return b.ases[number].tier != 1 })
		if edges && !p.IsSingleIP() {
			continue
		}
		keep := owners[:1]
		if edges {
			keep = nil
		} else {
			b.guess("%v is announced by AS %d and AS %d; it is taken for the former's", p, owners[0], owners[1])
		}
		for _, number := range owners[len(keep):] {
			a := b.ases[number]
			a.racks = slices.DeleteFunc(a.racks, func(o netip.Prefix) bool { return o == p })
			a.addresses = slices.DeleteFunc(a.addresses, func(o netip.Addr) bool { return p.IsSingleIP() && o == p.Addr() })
		}
		b.owners[p] = keep
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
