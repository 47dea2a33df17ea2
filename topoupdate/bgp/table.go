package bgp

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Config is what a Table knows of the host's sessions.
type Config struct {
	AS uint32 // the host's own, 0: not known
	// Neighbors are the AS numbers of the host's switches. Routes of others are refused.
	Neighbors map[netip.Addr]uint32
	// SIDBlock is the block of IPv6 that all SRv6 locators lie in, a /32 (RFC 9800). The
	// zero Prefix: there are none. Nothing inside is an address or a rack.
	SIDBlock netip.Prefix
}

// Key tells the routes of a Table apart.
type Key struct {
	Neighbor netip.Addr
	Prefix   netip.Prefix
	ID       uint32 // of the path (add-path), 0 without
}

// Route is a way to a prefix.
type Route struct {
	// ASPath begins with the neighbour's AS and ends with the AS of the switch that has the
	// prefix.
	ASPath []uint32
	// Merged says that the path has sets or segments of a confederation: it is that of an
	// aggregate, or names no switches.
	Merged bool
	// NextHop is where the neighbour says that packets are to be sent. The zero Addr is the
	// neighbour itself.
	NextHop netip.Addr
	// Rate is that of the path's last link, in Mbit/s; 0: not known.
	Rate float64
}

// Refused counts routes that a Table does not take, by the reason.
type Refused struct {
	Default  uint64 `json:"default"`   // 0.0.0.0/0, ::/0, and what is nearly as wide
	Unusable uint64 `json:"unusable"`  // prefixes of addresses that no node has, such as 127.0.0.0/8
	NoPath   uint64 `json:"no_path"`   // an empty AS path
	Merged   uint64 `json:"merged"`    // an AS path with sets, or segments of a confederation
	FirstAS  uint64 `json:"first_as"`  // the AS path does not begin with the neighbour's AS, as that of a route server
	Loop     uint64 `json:"loop"`      // an AS twice, with others between, or the host's own
	TooLong  uint64 `json:"too_long"`  // more switches than a Clos has on a path
	NoPlace  uint64 `json:"no_place"`  // the neighbour has its part of MaxRoutes
	ManyWays uint64 `json:"many_ways"` // the neighbour has maxWays to the prefix
}

// Table is the routes of all neighbours. It is not safe for concurrent use.
type Table struct {
	config   Config
	prefixes map[netip.Prefix][]route
	paths    map[string]*asPath
	count    map[netip.Addr]int // routes by neighbour
	total    int
	version  uint64
	refused  Refused
	last     taken
	key      []byte // scratch
}

// route is a route as the Table keeps it.
type route struct {
	neighbor netip.Addr
	id       uint32
	rate     float32
	path     *asPath
	nextHop  netip.Addr
	stale    bool
}

// asPath is an AS path that routes share.
type asPath struct {
	list   []uint32
	routes int

	// What Spec finds out.
	used    bool // by a route that counts
	transit bool // of one of the shortest ways to a network
}

// NewTable returns an empty Table.
func NewTable(c Config) *Table {
	return &Table{config: c, prefixes: make(map[netip.Prefix][]route), paths: make(map[string]*asPath), count: make(map[netip.Addr]int)}
}

// Refused tells what was not taken so far.
func (t *Table) Refused() Refused { return t.refused }

// Len returns the number of routes, Routes that of a neighbour's.
func (t *Table) Len() int                       { return t.total }
func (t *Table) Routes(neighbor netip.Addr) int { return t.count[neighbor] }

// Version changes with every change of the routes. News that change none, such as the same
// route again, or one that is refused, leave it.
func (t *Table) Version() uint64 { return t.version }

// Set adds a route, or replaces that of its key. It copies what it keeps. A route that it
// refuses replaces one of its key, too: by none.
func (t *Table) Set(k Key, r Route) {
	path := slices.Compact(slices.Clone(r.ASPath)) // without prepended repetitions
	list := t.prefixes[k.Prefix]
	at := find(list, k)
	if why := t.refuses(k, r, path, at < 0); why != nil {
		*why++
		t.remove(k.Prefix, at)
		return
	}
	fresh := route{neighbor: k.Neighbor, id: k.ID, rate: float32(r.Rate), nextHop: r.NextHop}
	if at >= 0 {
		if old := list[at]; slices.Equal(old.path.list, path) && old.rate == fresh.rate && old.nextHop == fresh.nextHop {
			list[at].stale = false
			return
		}
		t.release(list[at].path)
	} else {
		at = len(list)
		list = append(list, route{})
		t.prefixes[k.Prefix] = list
		t.count[k.Neighbor]++
		t.total++
	}
	fresh.path = t.intern(path)
	list[at] = fresh
	t.version++
}

// refuses returns the counter of the reason why a route is not taken, nil if it is. fresh
// says that it would not replace another.
func (t *Table) refuses(k Key, r Route, path []uint32, fresh bool) *uint64 {
	as, known := t.config.Neighbors[k.Neighbor]
	switch {
	case wide(k.Prefix):
		return &t.refused.Default
	case k.Prefix != k.Prefix.Masked() || !k.Prefix.Addr().IsGlobalUnicast() || k.Prefix.Addr().Is4In6():
		return &t.refused.Unusable
	case r.Merged:
		return &t.refused.Merged
	case len(path) == 0:
		return &t.refused.NoPath
	case !known || path[0] != as:
		return &t.refused.FirstAS
	case repeats(path) || t.config.AS != 0 && slices.Contains(path, t.config.AS):
		return &t.refused.Loop
	case len(path) > maxASPath:
		return &t.refused.TooLong
	case fresh && t.count[k.Neighbor] >= Share(len(t.config.Neighbors)):
		return &t.refused.NoPlace
	case fresh && waysOf(t.prefixes[k.Prefix], k.Neighbor) >= maxWays:
		return &t.refused.ManyWays
	}
	return nil
}

// wide reports whether a prefix is no rack's, but a default route or half of one.
func wide(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() < 8
	}
	return p.Bits() < 16
}

// waysOf counts the routes of a neighbour.
func waysOf(list []route, neighbor netip.Addr) (n int) {
	for i := range list {
		if list[i].neighbor == neighbor {
			n++
		}
	}
	return n
}

// repeats reports whether an AS is in a path twice.
func repeats(path []uint32) bool {
	if len(path) > 2*maxASPath {
		return false // too long anyway
	}
	for i, as := range path {
		if slices.Contains(path[:i], as) {
			return true
		}
	}
	return false
}

func find(list []route, k Key) int {
	return slices.IndexFunc(list, func(r route) bool { return r.id == k.ID && r.neighbor == k.Neighbor })
}

// Withdraw removes a route.
func (t *Table) Withdraw(k Key) { t.remove(k.Prefix, find(t.prefixes[k.Prefix], k)) }

// remove removes the route at a place, if that is one.
func (t *Table) remove(p netip.Prefix, at int) {
	if at < 0 {
		return
	}
	list := t.prefixes[p]
	t.release(list[at].path)
	t.count[list[at].neighbor]--
	t.total--
	t.version++
	last := len(list) - 1
	list[at], list[last] = list[last], route{}
	if last == 0 {
		delete(t.prefixes, p)
		return
	}
	t.prefixes[p] = list[:last]
}

// Stale has the routes of a neighbour whose session has ended hold until Sweep, unless they
// are set again.
func (t *Table) Stale(neighbor netip.Addr) {
	for _, list := range t.prefixes {
		for i := range list {
			if list[i].neighbor == neighbor {
				list[i].stale = true
			}
		}
	}
}

// Sweep removes the stale routes of a neighbour, which has sent all that it has.
func (t *Table) Sweep(neighbor netip.Addr) {
	for p := range t.prefixes {
		for i := len(t.prefixes[p]) - 1; i >= 0; i-- {
			if r := &t.prefixes[p][i]; r.neighbor == neighbor && r.stale {
				t.remove(p, i)
			}
		}
	}
}

// intern returns a path that equal ones share.
func (t *Table) intern(list []uint32) *asPath {
	t.key = t.key[:0]
	for _, as := range list {
		t.key = binary.BigEndian.AppendUint32(t.key, as)
	}
	p := t.paths[string(t.key)]
	if p == nil {
		p = &asPath{list: list}
		t.paths[string(t.key)] = p
	}
	p.routes++
	return p
}

func (t *Table) release(p *asPath) {
	if p.routes--; p.routes > 0 {
		return
	}
	t.key = t.key[:0]
	for _, as := range p.list {
		t.key = binary.BigEndian.AppendUint32(t.key, as)
	}
	delete(t.paths, string(t.key))
}
