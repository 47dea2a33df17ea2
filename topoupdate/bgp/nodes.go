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
	// OnLink are the networks of its devices. A next hop of the neighbour's family has to be
	// in one of them. None: that is not checked.
	OnLink []netip.Prefix
}

// Spec returns the graph that the routes make up, the host itself included, and what it had
// to guess or to leave out, a line each. A switch is called by its AS, such as as65001. It has
// the host routes (/32, /128) that its AS announces as its addresses, and as its locator the
// /48 that it announces within Config.SIDBlock. An edge switch is a neighbour,
// or announces prefixes and is on no shortest way to those of others; the prefixes are its
// racks, of which several edge switches may have one. (Longer ways may lead through racks where a link is down, and so may the shortest
// one to a switch's own address.) Prefixes of links, /30
// and longer, are nobody's racks. Other switches without an address are left out, as
// packets cannot bounce there. Routes whose Rate is known give rates to links; if some are
// known, the others count as the fastest.
//
// Where several switches have one AS, and a neighbour sends several routes of one AS path,
// each address of that AS is taken for a switch, and all of them for wired alike.
func (t *Table) Spec(self Host) (s graph.Spec, guesses []string) {
	b := builder{t: t, self: self, ases: make(map[uint32]*as), links: make(map[[2]uint32]*wire), sure: make(map[netip.Prefix]bool), nowhere: make(map[netip.Addr]bool), shares: make(map[netip.Prefix][]claim)}
	for _, p := range t.paths {
		p.used, p.transit = false, false
	}
	for p, list := range t.prefixes {
		b.read(p, list)
	}
	b.findTrunks()
	for _, p := range t.paths {
		if p.used {
			b.follow(p)
		}
	}
	for p, list := range t.prefixes {
		b.claim(p, list)
	}
	b.doubtLinks()
	b.setTiers()
	b.settleRacks()
	b.settleSharing()
	b.tellClaims()
	b.keep()
	s = b.spec()
	t.last = b.take(s)
	if b.more > 0 {
		b.guesses = append(b.guesses, fmt.Sprintf("and %d more of that kind", b.more))
	}
	return s, b.guesses
}

// as is what is known of an AS.
type as struct {
	number  uint32
	edge    bool // a neighbour
	seen    bool
	common  []uint32 // of all paths to it, the switches before it but the neighbour
	passes  bool     // is between others on a shortest way
	through []uint32 // of these, the other switches

	addresses [2][]claim // by family
	locators  []claim
	racks     []netip.Prefix
	rooted    bool // different switches say that it has one of racks
	tier      int  // 0: none
	shared    bool
	kept      bool
}

// sure reports whether different switches say that there is this AS.
func (a *as) sure() bool { return len(a.common) == 0 }

// ends reports whether ways end at an AS: it has racks, and is not between others. Where
// one switch alone says so of either, the better evidence counts, and then what was before.
func (a *as) ends(before int) bool {
	switch {
	case a.edge:
		return true
	case len(a.racks) == 0 || a.passes && len(a.through) == 0:
		return false
	}
	return a.rooted || before == 1 || before == 0 && !a.passes
}

// wire is a link between two AS numbers.
type wire struct {
	seen   bool
	common []uint32  // as that of an as
	length int       // of the shortest paths that tell of its rate
	rates  []float64 // what these say, Mbit/s
}

type builder struct {
	sure    map[netip.Prefix]bool    // claimed by different switches
	shares  map[netip.Prefix][]claim // of several, in the order of who is believed
	t       *Table
	self    Host
	ases    map[uint32]*as
	links   map[[2]uint32]*wire // the lesser number first
	trunks  map[uint32][]uint32 // by neighbour
	usable  []route             // scratch
	witness []uint32            // scratch
	nowhere map[netip.Addr]bool // next hops that are not on the link
	stolen  []dispute           // prefixes with this host's own address
	doubles []dispute           // prefixes of several
	order   []*as               // who comes first where there is not place for all
	guesses []string
	more    int // that were too many
}

func (b *builder) guess(format string, args ...any) {
	if len(b.guesses) == maxGuesses {
		b.more++
		return
	}
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

// read takes note of a prefix and its routes.
func (b *builder) read(p netip.Prefix, list []route) {
	b.usable = b.usable[:0]
	shortest := maxASPath + 1
	for _, r := range list {
		if !b.onLink(r) {
			b.nowhere[r.nextHop] = true
			continue
		}
		r.path.used = true
		b.usable = append(b.usable, r)
		shortest = min(shortest, len(r.path.list))
	}
	if len(b.usable) == 0 {
		return
	}
	network := !p.IsSingleIP()
	for i, r := range b.usable {
		path := r.path.list
		r.path.transit = r.path.transit || network && len(path) == shortest
		b.rate(path, float64(r.rate))
		// The same AS path twice leads by different switches.
		if len(path) > 2 && slices.ContainsFunc(b.usable[:i], func(o route) bool { return o.path == r.path && o.neighbor == r.neighbor }) {
			for _, number := range path[1 : len(path)-1] {
				b.as(number).shared = true
			}
		}
	}
}

// findTrunks finds the switches that all ways of a neighbour lead through, such as its only
// uplink. As with the neighbour itself, nothing is known without them.
func (b *builder) findTrunks() {
	b.trunks = make(map[uint32][]uint32)
	for _, p := range b.t.paths {
		if path := p.list; p.used && len(path) > 1 {
			trunk, known := b.trunks[path[0]]
			b.trunks[path[0]] = narrow(trunk, path[1:], !known)
		}
	}
}

// before returns the switches of a path before place i, but for the trunk. It is good until
// the next call.
func (b *builder) before(path []uint32, i int) []uint32 {
	b.witness = b.witness[:0]
	for k := 1; k < i; k++ {
		if !slices.Contains(b.trunks[path[0]], path[k]) {
			b.witness = append(b.witness, path[k])
		}
	}
	return b.witness
}

// onLink reports whether a next hop is where the neighbour is, or a neighbour of it.
func (b *builder) onLink(r route) bool {
	hop := r.nextHop.Unmap()
	switch {
	case !hop.IsValid() || hop == r.neighbor:
		return true
	case slices.Contains(b.self.Addresses, hop):
		return false
	case hop.Is4() != r.neighbor.Is4() || hop.IsLinkLocalUnicast() || len(b.self.OnLink) == 0:
		return true
	}
	return slices.ContainsFunc(b.self.OnLink, func(p netip.Prefix) bool { return p.Contains(hop) })
}

// rate takes note of what a route says of its last link.
func (b *builder) rate(path []uint32, rate float64) {
	if rate <= 0 || len(path) < 2 {
		return
	}
	w := b.wire(path[len(path)-2], path[len(path)-1])
	if len(w.rates) == 0 || len(path) < w.length {
		w.length, w.rates = len(path), w.rates[:0]
	}
	if len(path) == w.length {
		w.rates = append(w.rates, rate)
	}
}

func (b *builder) wire(x, y uint32) *wire {
	key := [2]uint32{min(x, y), max(x, y)}
	w := b.links[key]
	if w == nil {
		w = &wire{}
		b.links[key] = w
	}
	return w
}

// follow takes note of the switches and links of a path.
func (b *builder) follow(p *asPath) {
	path := p.list
	b.as(path[0]).edge = true
	for i, number := range path {
		a := b.as(number)
		a.common = narrow(a.common, b.before(path, i), !a.seen)
		a.seen = true
		if i > 0 {
			w := b.wire(path[i-1], number)
			w.common = narrow(w.common, b.before(path, i-1), !w.seen)
			w.seen = true
		}
		if p.transit && i > 0 && i < len(path)-1 {
			with := b.before(path, i)
			if i > 1 { // what is beside a neighbour is no rack
				with = append(with, path[i+1:]...) // who has a prefix can have it come by a rack
			}
			a.through = narrow(a.through, with, !a.passes)
			a.passes = true
		}
	}
}

// narrow returns what two lists have in common. The first time it is the second.
func narrow(common, list []uint32, first bool) []uint32 {
	if first {
		return slices.Clone(list)
	}
	return slices.DeleteFunc(common, func(as uint32) bool { return !slices.Contains(list, as) })
}
