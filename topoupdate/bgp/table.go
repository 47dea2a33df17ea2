package bgp

import (
	"cmp"
	"net/netip"
	"slices"
)

// MaxRoutes bounds a Table. A fabric of 1,152 racks with 24 uplinks each has fewer than
// 30,000 per family.
const MaxRoutes = 200_000

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
}

// Refused counts routes that a Table does not take, by the reason.
type Refused struct {
	Default uint64 `json:"default"`  // 0.0.0.0/0, ::/0
	NoPath  uint64 `json:"no_path"`  // an empty AS path
	Loop    uint64 `json:"loop"`     // an AS twice, with others between, or too long
	NoPlace uint64 `json:"no_place"` // the Table has MaxRoutes
}

// Table is the routes of all neighbours. It is not safe for concurrent use.
type Table struct {
	routes  map[Key]Route
	refused Refused
}

// NewTable returns an empty Table.
func NewTable() *Table { return &Table{routes: make(map[Key]Route)} }

// Refused tells what was not taken so far.
func (t *Table) Refused() Refused { return t.refused }

// Len returns the number of routes.
func (t *Table) Len() int { return len(t.routes) }

// Set adds a route, or replaces that of its key. It keeps r. A route that it refuses
// replaces one of its key, too: by none.
func (t *Table) Set(k Key, r Route) {
	r.ASPath = slices.Compact(slices.Clone(r.ASPath)) // without prepended repetitions
	var why *uint64
	switch {
	case k.Prefix.Bits() == 0:
		why = &t.refused.Default
	case len(r.ASPath) == 0:
		why = &t.refused.NoPath
	case repeats(r.ASPath) || len(r.ASPath) > maxASPath:
		why = &t.refused.Loop
	case len(t.routes) >= MaxRoutes:
		if _, ok := t.routes[k]; !ok {
			why = &t.refused.NoPlace
		}
	}
	if why != nil {
		*why++
		delete(t.routes, k)
		return
	}
	t.routes[k] = r
}

// maxASPath is the length of the longest AS path in a Clos: up and down again.
const maxASPath = 9

// repeats reports whether an AS is in a path twice.
func repeats(path []uint32) bool {
	for i, as := range path {
		if slices.Contains(path[:i], as) {
			return true
		}
	}
	return false
}

// Withdraw removes a route.
func (t *Table) Withdraw(k Key) { delete(t.routes, k) }

// Drop removes all routes of a neighbour, whose session has ended.
func (t *Table) Drop(neighbor netip.Addr) {
	for k := range t.routes {
		if k.Neighbor == neighbor {
			delete(t.routes, k)
		}
	}
}

// keys returns those of all routes, in an order of their own.
func (t *Table) keys() []Key {
	list := make([]Key, 0, len(t.routes))
	for k := range t.routes {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b Key) int {
		return cmp.Or(comparePrefixes(a.Prefix, b.Prefix), a.Neighbor.Compare(b.Neighbor), cmp.Compare(a.ID, b.ID))
	})
	return list
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
