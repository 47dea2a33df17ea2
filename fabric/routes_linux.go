package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// routeID is the key by which the kernel keeps one route: routes to one prefix in
// one table differ by their metric.
type routeID struct {
	table  int
	prefix netip.Prefix
	metric int
}

func (r Route) id() routeID {
	id := routeID{table: r.table(), prefix: r.Prefix.Masked()}
	if len(r.Via) == 0 {
		id.metric = lastMetric
	}
	return id
}

// kind is the kernel's number of the route's type.
func (r Route) kind() int {
	switch {
	case len(r.Via) > 0:
		return unix.RTN_UNICAST
	case r.Drop:
		return unix.RTN_BLACKHOLE
	}
	return unix.RTN_UNREACHABLE
}

// table is the kernel's number of the table that the route is in.
func (r Route) table() int {
	if r.Table == 0 {
		return unix.RT_TABLE_MAIN
	}
	return r.Table
}

func kernelRouteID(r netlink.Route) routeID {
	id := routeID{table: r.Table, metric: r.Priority, prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	if r.Dst != nil {
		addr, _ := netip.AddrFromSlice(r.Dst.IP.To4())
		bits, _ := r.Dst.Mask.Size()
		id.prefix = netip.PrefixFrom(addr, bits)
	}
	return id
}

// plannedRoutes lists the routes with our protocol number in the tables that
// plans are for.
func plannedRoutes(h *netlink.Handle) (map[routeID]netlink.Route, error) {
	have, err := kernel.Dumped(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: kernel.RouteProtocol, Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("list the routes: %w", err))
	}
	planned := make(map[routeID]netlink.Route, len(have))
	for _, r := range have {
		if r.Table == unix.RT_TABLE_MAIN || isVirtualTable(r.Table) || isSuffixTable(r.Table) {
			planned[kernelRouteID(r)] = r
		}
	}
	return planned, nil
}

// syncRoutes makes the routes with our protocol number those of the plan: it
// adds and replaces what differs, then removes what is left over, so that no
// destination is without a route in between.
func syncRoutes(h *netlink.Handle, routes []Route, ports []netlink.Link) (changed int, err error) {
	old, err := plannedRoutes(h)
	if err != nil {
		return 0, err
	}
	index := portIndexes(ports)
	for _, route := range routes {
		want, err := netlinkRoute(route, index)
		if err != nil {
			return changed, err
		}
		was, ok := old[route.id()]
		delete(old, route.id())
		if ok && routeKey(was) == routeKey(want) {
			continue
		}
		if err := h.RouteReplace(&want); err != nil {
			return changed, kernel.Explain(fmt.Errorf("%s: %w", route.command(), err))
		}
		changed++
	}
	for id, was := range old {
		if err := deleteRoute(h, id, was.Type); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

func portIndexes(ports []netlink.Link) map[string]int {
	index := make(map[string]int, len(ports))
	for _, port := range ports {
		index[port.Attrs().Name] = port.Attrs().Index
	}
	return index
}

// deleteRoute removes a route of ours; one that has gone already, as those of
// a port do that goes down, is none to complain of.
func deleteRoute(h *netlink.Handle, id routeID, kind int) error {
	r := netlink.Route{Dst: kernel.IPNet(id.prefix), Table: id.table, Priority: id.metric, Protocol: kernel.RouteProtocol, Type: kind}
	if err := h.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
		return kernel.Explain(fmt.Errorf("remove the route to %s: %w", id.prefix, err))
	}
	return nil
}

func netlinkRoute(r Route, index map[string]int) (netlink.Route, error) {
	n := netlink.Route{Dst: kernel.IPNet(r.Prefix), Protocol: kernel.RouteProtocol, Table: r.table(), Type: r.kind()}
	if r.Src.IsValid() {
		n.Src = r.Src.AsSlice()
	}
	for _, hop := range r.Via {
		i, ok := index[hop.Port]
		if !ok {
			return n, fmt.Errorf("route to %s: port %s is not one of the node's", r.Prefix, hop.Port)
		}
		n.MultiPath = append(n.MultiPath, &netlink.NexthopInfo{
			LinkIndex: i, Gw: hop.Addr.AsSlice(), Hops: max(hop.Weight, 1) - 1, Flags: int(netlink.FLAG_ONLINK)})
	}
	switch len(r.Via) {
	case 0:
		n.Priority = lastMetric
	case 1:
		n.LinkIndex, n.Gw, n.Flags = n.MultiPath[0].LinkIndex, n.MultiPath[0].Gw, n.MultiPath[0].Flags
		n.MultiPath = nil
	}
	return n, nil
}

// routeKey is what two routes of one routeID must share to be the same.
func routeKey(r netlink.Route) string {
	hops := ""
	if r.Type == unix.RTN_UNICAST {
		hops = hopKeys(r)
	}
	return fmt.Sprintf("%d %s %s", r.Type, r.Src, hops)
}

func hopKeys(r netlink.Route) string {
	hops := []string{hopKey(r.LinkIndex, r.Gw, 0)}
	if len(r.MultiPath) > 0 {
		hops = hops[:0]
		for _, h := range r.MultiPath {
			hops = append(hops, hopKey(h.LinkIndex, h.Gw, h.Hops))
		}
		slices.Sort(hops)
	}
	return strings.Join(hops, " ")
}

// hopKey is of a next hop. more is its weight less 1, and 0 of the only one.
func hopKey(index int, gw net.IP, more int) string { return fmt.Sprintf("%d:%s:%d", index, gw, more) }
