package fabric

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// syncRoutes makes the routes with our protocol number in the main table those
// of the plan: it adds and replaces what differs, then removes what is left
// over, so that no destination is without a route in between.
func syncRoutes(h *netlink.Handle, routes []Route, ports []netlink.Link) (changed int, err error) {
	have, err := dumped(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeProtocol, Table: unix.RT_TABLE_MAIN},
			netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return 0, explain(fmt.Errorf("list the routes: %w", err))
	}
	old := make(map[string]netlink.Route, len(have))
	for _, r := range have {
		old[prefixKey(r)] = r
	}
	index := make(map[string]int, len(ports))
	for _, port := range ports {
		index[port.Attrs().Name] = port.Attrs().Index
	}
	for _, route := range routes {
		want, err := netlinkRoute(route, index)
		if err != nil {
			return changed, err
		}
		was, ok := old[prefixKey(want)]
		delete(old, prefixKey(want))
		if ok && routeKey(was) == routeKey(want) {
			continue
		}
		if err := h.RouteReplace(&want); err != nil {
			return changed, explain(fmt.Errorf("%s: %w", route.command(), err))
		}
		changed++
	}
	for prefix, r := range old {
		if err := h.RouteDel(&r); err != nil {
			return changed, explain(fmt.Errorf("remove the route to %s: %w", prefix, err))
		}
		changed++
	}
	return changed, nil
}

func netlinkRoute(r Route, index map[string]int) (netlink.Route, error) {
	n := netlink.Route{Dst: ipNet(r.Prefix), Protocol: routeProtocol, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST}
	if r.Src.IsValid() {
		n.Src = r.Src.AsSlice()
	}
	for _, hop := range r.Via {
		i, ok := index[hop.Port]
		if !ok {
			return n, fmt.Errorf("route to %s: port %s is not one of the node's", r.Prefix, hop.Port)
		}
		n.MultiPath = append(n.MultiPath, &netlink.NexthopInfo{
			LinkIndex: i, Gw: hop.Addr.AsSlice(), Flags: int(netlink.FLAG_ONLINK)})
	}
	switch len(r.Via) {
	case 0:
		n.Type, n.Priority = unix.RTN_UNREACHABLE, refusalMetric
	case 1:
		n.LinkIndex, n.Gw, n.Flags = n.MultiPath[0].LinkIndex, n.MultiPath[0].Gw, n.MultiPath[0].Flags
		n.MultiPath = nil
	}
	return n, nil
}

func prefixKey(r netlink.Route) string {
	if r.Dst == nil {
		return "0.0.0.0/0"
	}
	return r.Dst.String()
}

// routeKey is what two routes to one prefix must share to be the same.
func routeKey(r netlink.Route) string {
	hops := []string{hopKey(r.LinkIndex, r.Gw)}
	if len(r.MultiPath) > 0 {
		hops = hops[:0]
		for _, h := range r.MultiPath {
			hops = append(hops, hopKey(h.LinkIndex, h.Gw))
		}
		slices.Sort(hops)
	}
	if r.Type == unix.RTN_UNREACHABLE {
		hops = nil
	}
	return fmt.Sprintf("%d %d %s %s", r.Type, r.Priority, r.Src, strings.Join(hops, " "))
}

func hopKey(index int, gw net.IP) string { return fmt.Sprintf("%d:%s", index, gw) }
