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
	noSet            = 0 // of destinations with one way
)

// destination is struct destination of bpf/balance.c.
type destination struct {
	Bits uint32
	Addr [4]byte
}

// filled is what the tables were filled with.
type filled struct {
	destinations int // with several next hops
	leftOut      int // of these, those without room
}

// refresh brings the program's tables in step with the kernel's routes.
func (b *Balance) refresh() error {
	f, err := fillBalance(b.handle, b.in.Maps[balanceMapDestinations], b.in.Maps[balanceMapSets])
	if err == nil {
		b.filled = f
	}
	return err
}

// refreshBalance is Balance.refresh for the programs at ports, whoever attached them, if
// there are any.
func refreshBalance(h *netlink.Handle, ports []netlink.Link) error {
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
		destinations, err := kernel.MapOf(id, balanceMapDestinations)
		if err != nil {
			return err
		}
		defer destinations.Close()
		sets, err := kernel.MapOf(id, balanceMapSets)
		if err != nil {
			return err
		}
		defer sets.Close()
		_, err = fillBalance(h, destinations, sets)
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
		err = refreshBalance(h, links)
	}
	if err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	return nil
}

func fillBalance(h *netlink.Handle, destinations, sets *ebpf.Map) (f filled, err error) {
	routes, err := hopsByPrefix(h)
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
	_, err = kernel.SyncMap(destinations, table)
	return f, err
}

// hopsByPrefix lists the live next hops of the routes of the main table. Of several routes
// to a prefix the first counts, which the kernel takes.
func hopsByPrefix(h *netlink.Handle) (map[netip.Prefix][]balance.Hop, error) {
	list, err := kernel.Dumped(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("list the routes: %w", err))
	}
	slices.SortStableFunc(list, func(a, b netlink.Route) int { return a.Priority - b.Priority })
	all := make(map[netip.Prefix][]balance.Hop, len(list))
	for _, r := range list {
		prefix := kernelRouteID(r).prefix
		if _, before := all[prefix]; before || r.Tos != 0 {
			continue
		}
		var hops []balance.Hop
		for _, n := range r.MultiPath {
			if n.Flags&unix.RTNH_F_DEAD == 0 {
				hops = append(hops, balance.Hop{Port: uint32(n.LinkIndex), Weight: uint32(n.Hops) + 1})
			}
		}
		all[prefix] = hops
	}
	return all, nil
}

// tablesOf numbers the sets of routes. Sets that are in have keep their number; it writes
// others over those that are not needed any more, and returns their numbers. The table has
// the prefixes with several next hops, and those within them that have one.
func tablesOf(routes map[netip.Prefix][]balance.Hop, have []balance.Set) (table map[destination]uint32, changed []int, f filled) {
	wanted := make(map[netip.Prefix]balance.Set)
	needed := make(map[balance.Set]bool)
	for prefix, hops := range routes {
		s, err := balance.NewSet(hops)
		if len(hops) > 1 {
			f.destinations++
		}
		if err != nil {
			f.leftOut++
		}
		if wanted[prefix] = s; s.N > 0 {
			needed[s] = true
		}
	}
	number := map[balance.Set]uint32{{}: noSet}
	var free []int
	for i, s := range have {
		if _, twice := number[s]; i != noSet && !twice && needed[s] {
			number[s] = uint32(i)
		} else if i != noSet {
			free = append(free, i)
		}
	}
	table = make(map[destination]uint32)
	for _, prefix := range slices.SortedFunc(maps.Keys(wanted), netip.Prefix.Compare) {
		s := wanted[prefix]
		n, known := number[s]
		switch {
		case s.N == 0 && !within(prefix, wanted):
			continue // nobody asks
		case len(table) == maxBalanceRoutes, !known && len(free) == 0:
			f.leftOut++
			continue
		case !known:
			n, free = uint32(free[0]), free[1:]
			have[n], number[s] = s, n
			changed = append(changed, int(n))
		}
		table[destination{uint32(prefix.Bits()), prefix.Addr().As4()}] = n
	}
	return table, changed, f
}

// within reports whether a shorter prefix has several next hops.
func within(p netip.Prefix, wanted map[netip.Prefix]balance.Set) bool {
	for bits := p.Bits() - 1; bits >= 0; bits-- {
		shorter, _ := p.Addr().Prefix(bits)
		if wanted[shorter].N > 0 {
			return true
		}
	}
	return false
}
