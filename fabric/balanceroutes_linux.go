package fabric

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/balance"
	"weft/internal/kernel"
)

// What the program's tables hold: bpf/balance.c.
const (
	maxBalanceSets   = 256
	maxBalanceRoutes = 1 << 16
	noSet            = 0 // of destinations with one way, or without room
)

// destination and destination6 are the structures of bpf/balance.c.
type (
	destination struct {
		Bits uint32
		Addr [4]byte
	}
	destination6 struct {
		Bits uint32
		Addr [16]byte
	}
)

// filled is what the tables were filled with.
type filled struct {
	destinations int // with several next hops
	leftOut      int // of these, those without room
	grouped      int // of these, those with several groups
}

// refresh brings the program's tables in step with the kernel's routes.
func (b *Balance) refresh() error {
	if b.rule.AtLeaf() {
		return b.refreshLeaf()
	}
	f, err := fillBalance(b.handle, b.in.Maps)
	if err == nil {
		b.filled, err = f, b.putPins()
	}
	return err
}

// refreshBalance is Balance.refresh for the programs at ports, whoever attached them, if
// there are any that go by routes. Groups are those of the routes, or, if these are nil, as they were.
func refreshBalance(h *netlink.Handle, ports []netlink.Link, routes []Route) error {
	for _, port := range ports {
		id, err := kernel.BalanceFilter.Program(h, port)
		if errors.Is(err, kernel.ErrUplinkGone) {
			continue
		}
		if err != nil {
			return err
		}
		if id == 0 {
			continue
		}
		tables := make(map[string]*ebpf.Map)
		for _, name := range []string{balanceMapDestinations, balanceMapDestinations6, balanceMapSets} {
			tables[name], err = kernel.MapOf(id, name)
			if errors.Is(err, kernel.ErrNoMap) {
				return nil // conga or luopan, which do not go by routes
			}
			if err != nil {
				return err
			}
			defer tables[name].Close()
		}
		tables[groupsMap], err = kernel.MapOf(id, groupsMap)
		switch {
		case errors.Is(err, kernel.ErrNoMap): // of another rule's
		case err != nil:
			return err
		default:
			defer tables[groupsMap].Close()
			if routes != nil {
				if err := putGroups(tables[groupsMap], routes, portIndexes(ports)); err != nil {
					return err
				}
			}
		}
		_, err = fillBalance(h, tables)
		return err
	}
	return nil
}

// RefreshBalance brings the tables of a switch that balances in step with the kernel's
// routes, in the network namespace of the calling thread, whoever has attached the programs.
// Without programs it does nothing. A Balance does that itself when it is repaired.
func RefreshBalance(ports []string) error {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Links(h, ports)
	if err == nil {
		err = refreshBalance(h, links, nil)
	}
	if err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	return nil
}

// fillBalance fills a program's tables, which are given by their names. groupsMap may be missing.
func fillBalance(h *netlink.Handle, tables map[string]*ebpf.Map) (f filled, err error) {
	sets := tables[balanceMapSets]
	routes, err := hopsByPrefix(h, tables[groupsMap])
	if err != nil {
		return f, err
	}
	var have []balance.Set
	for i := range uint32(maxBalanceSets) {
		var s balance.Set
		if err := sets.Lookup(i, &s); err != nil {
			return f, err
		}
		have = append(have, s)
	}
	table, changed, f := tablesOf(routes, have)
	for _, i := range changed {
		if err := sets.Put(uint32(i), &have[i]); err != nil {
			return f, err
		}
	}
	four, six := byFamily(table)
	_, err = kernel.SyncMap(tables[balanceMapDestinations], four)
	_, err2 := kernel.SyncMap(tables[balanceMapDestinations6], six)
	return f, errors.Join(err, err2)
}

// byFamily returns a table of both families as the program has it.
func byFamily(table map[netip.Prefix]uint32) (four map[destination]uint32, six map[destination6]uint32) {
	four, six = make(map[destination]uint32), make(map[destination6]uint32)
	for prefix, n := range table {
		bits := uint32(prefix.Bits())
		if a := prefix.Addr(); a.Is4() {
			four[destination{bits, a.As4()}] = n
		} else {
			six[destination6{bits, a.As16()}] = n
		}
	}
	return four, six
}

// hopsByPrefix lists the live next hops of the routes of both families' main tables. Of
// several routes to a prefix the first counts, which the kernel takes. The hops' groups are
// those of the map, which may be nil.
func hopsByPrefix(h *netlink.Handle, groups *ebpf.Map) (map[netip.Prefix][]balance.Hop, error) {
	of, err := readGroups(groups)
	if err != nil {
		return nil, err
	}
	all := make(map[netip.Prefix][]balance.Hop)
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := kernel.Dumped(func() ([]netlink.Route, error) {
			return h.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return nil, kernel.Explain(fmt.Errorf("list the routes: %w", err))
		}
		list = ofFamily(list, family)
		slices.SortStableFunc(list, func(a, b netlink.Route) int { return a.Priority - b.Priority })
		for _, r := range list {
			prefix := kernelRouteID(r).prefix
			if family == netlink.FAMILY_V6 {
				prefix = kernelRouteID6(r).prefix
			}
			if _, before := all[prefix]; !before && r.Tos == 0 {
				all[prefix] = liveHops(r, prefix, of)
			}
		}
	}
	return all, nil
}

// ofFamily are the routes of a family. Where the kernel has no IPv6 (ipv6.disable=1) it answers
// the question for its routes with those of all families.
func ofFamily(list []netlink.Route, family int) []netlink.Route {
	return slices.DeleteFunc(list, func(r netlink.Route) bool { return r.Family != family })
}

// liveHops are those of a route to a prefix. Groups are known of IPv4.
func liveHops(r netlink.Route, prefix netip.Prefix, groups map[groupOfHop]uint32) (hops []balance.Hop) {
	for _, n := range r.MultiPath {
		if n.Flags&unix.RTNH_F_DEAD != 0 {
			continue
		}
		hop := balance.Hop{Port: uint32(n.LinkIndex), Weight: uint32(n.Hops) + 1}
		if prefix.Addr().Is4() {
			hop.Group = groups[groupKey(prefix, n.LinkIndex)]
		}
		hops = append(hops, hop)
	}
	return hops
}

// tablesOf numbers the sets of routes. The table has the prefixes with several next hops, and
// those within them that have one way, or no room for a set: the kernel does these alone.
// It writes new sets into have, and returns their numbers.
func tablesOf(routes map[netip.Prefix][]balance.Hop, have []balance.Set) (table map[netip.Prefix]uint32, changed []int, f filled) {
	number, changed := numberSets(routes, have)
	table = make(map[netip.Prefix]uint32)
	var lengths [129]bool // of the prefixes with several next hops
	var used [2]int       // entries of each family
	for prefix := range number {
		lengths[prefix.Bits()] = true
	}
	put := func(prefix netip.Prefix, n uint32) uint32 {
		taken := &used[0]
		if prefix.Addr().Is6() {
			taken = &used[1]
		}
		switch {
		case n == noSet && !within(prefix, number, &lengths): // nobody asks
			return noSet
		case *taken == maxBalanceRoutes:
			return noSet
		}
		table[prefix], *taken = n, *taken+1
		return n
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(number), netip.Prefix.Compare) {
		f.destinations++
		if put(prefix, number[prefix]) == noSet {
			f.leftOut++
		} else if have[number[prefix]].Groups > 1 {
			f.grouped++
		}
	}
	for prefix, hops := range routes {
		if len(hops) <= 1 {
			put(prefix, noSet)
		}
	}
	return table, changed, f
}

// numberSets gives each prefix with several next hops the number of its set, or noSet if
// there is no room. Sets that are in have keep their number. It writes others over those
// that are not needed any more, and returns their numbers. It makes as many sets as there
// is room for, not as many as there are prefixes: each is 1 KB.
func numberSets(routes map[netip.Prefix][]balance.Hop, have []balance.Set) (number map[netip.Prefix]uint32, changed []int) {
	known := make(map[balance.Set]uint32)
	for i, s := range have {
		if _, twice := known[s]; s.N > 0 && !twice {
			known[s] = uint32(i)
		}
	}
	number = make(map[netip.Prefix]uint32)
	for prefix, hops := range routes {
		if len(hops) > 1 {
			number[prefix] = noSet
		}
	}
	needed := make([]bool, len(have))
	needed[noSet] = true
	var fresh []balance.Set // with numbers behind those of have, for now
	for _, prefix := range slices.SortedFunc(maps.Keys(number), netip.Prefix.Compare) {
		s, err := balance.NewSet(routes[prefix])
		n, ok := known[s]
		switch {
		case err != nil || !ok && len(fresh) == len(have):
			continue
		case !ok:
			n = uint32(len(have) + len(fresh))
			known[s], fresh = n, append(fresh, s)
		case int(n) < len(have):
			needed[n] = true
		}
		number[prefix] = n
	}
	final := make([]uint32, len(fresh)) // noSet where there is no room
	for i := range have {
		if !needed[i] && len(changed) < len(fresh) {
			have[i], final[len(changed)] = fresh[len(changed)], uint32(i)
			changed = append(changed, i)
		}
	}
	for prefix, n := range number {
		if i := int(n) - len(have); i >= 0 {
			number[prefix] = final[i]
		}
	}
	return number, changed
}

// within reports whether a shorter prefix has a set, or would have one if there were room.
func within(p netip.Prefix, number map[netip.Prefix]uint32, lengths *[129]bool) bool {
	for bits := range p.Bits() {
		if !lengths[bits] {
			continue
		}
		shorter, _ := p.Addr().Prefix(bits)
		if _, ok := number[shorter]; ok {
			return true
		}
	}
	return false
}
