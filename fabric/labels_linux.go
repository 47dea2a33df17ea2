package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/kernel"
)

// forwardLabels makes the namespace of the calling thread forward by labels as
// planned.
func (r *Report) forwardLabels(h *netlink.Handle, p NodePlan) error {
	ports, err := p.links(h) // as they are now, up
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() (int, error)
	}{
		// First, so that there are no labels for hosts to forge before.
		{"put back the program where labels begin and end", func() (int, error) { return r.attachEdge(h, ports, p) }},
		{"put back the program of classes", func() (int, error) { return r.attachClasses(h, ports, p) }},
		{"put back IPv6 addresses", func() (int, error) { return syncAddresses6(h, p) }},
		{"put back IPv6 routes and those of labels", func() (int, error) { return r.syncSIDs(h, ports, p) }},
		{"put back MPLS routes", func() (int, error) { return r.syncMPLS(h, ports, p) }},
	} {
		n, err := step.do()
		r.Add(n, step.what)
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreLabels restores what the kernel forgets when a port is set down: its
// address and its routes.
func restoreLabels(h *netlink.Handle, p NodePlan) (changed int, err error) {
	ports, err := p.links(h)
	if err != nil {
		return 0, err
	}
	if changed, err = syncAddresses6(h, p); err != nil {
		return changed, err
	}
	n, err := syncRoutes6(h, ports, p)
	return changed + n, err
}

// links finds the planned ports.
func (p NodePlan) links(h *netlink.Handle) ([]netlink.Link, error) {
	names := make([]string, len(p.Ports))
	for i, port := range p.Ports {
		names[i] = port.Name
	}
	return kernel.Links(h, names)
}

// syncAddresses6 gives the node its IPv6 addresses: it is the only one that can
// have them, so nobody is asked first (NODAD).
func syncAddresses6(h *netlink.Handle, p NodePlan) (changed int, err error) {
	if !p.has6() {
		return 0, nil
	}
	list, err := kernel.Dumped(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V6) })
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("IPv6 addresses: %w", err))
	}
	type own struct {
		index int
		addr  string
	}
	have := make(map[own]bool, len(list))
	for _, a := range list {
		have[own{a.LinkIndex, a.IPNet.String()}] = true
	}
	names := []string{p.Device}
	for _, port := range p.Ports {
		names = append(names, port.Name)
	}
	links, err := kernel.Links(h, names)
	if err != nil {
		return 0, err
	}
	add := func(link netlink.Link, p netip.Prefix, scope int) error {
		a := netlink.Addr{IPNet: kernel.IPNet(p), Flags: unix.IFA_F_NODAD, Scope: scope}
		up := link.Attrs().Flags&net.FlagUp != 0
		if have[own{link.Attrs().Index, a.IPNet.String()}] || !up {
			return nil
		}
		if err := h.AddrReplace(link, &a); err != nil {
			return kernel.Explain(fmt.Errorf("address %s on %s: %w", p, link.Attrs().Name, err))
		}
		changed++
		return nil
	}
	for _, a := range p.addresses6() {
		if err := add(links[0], netip.PrefixFrom(a, 128), 0); err != nil {
			return changed, err
		}
	}
	for i, link := range links[1:] {
		a := p.linkLocal(i)
		if !a.IsValid() {
			continue // that which the kernel makes will do
		}
		if err := add(link, netip.PrefixFrom(a, 64), unix.RT_SCOPE_LINK); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// syncSIDs makes the IPv6 routes with our protocol number those planned.
func (r *Report) syncSIDs(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	changed, err = syncRoutes6(h, ports, p)
	if err != nil || !p.LinkLocal6.IsValid() {
		return changed, err
	}
	if err := checkMicroSIDs(); err != nil {
		return changed, err
	}
	r.Labels = append(r.Labels, encap.CarrierSRv6)
	return changed, nil
}

// ErrNoSIDs is about kernels that cannot forward by micro-SIDs.
var ErrNoSIDs = errors.New("labels in IPv6 need Linux 6.6 with the option IPV6_SEG6_LWTUNNEL (End.X with NEXT-C-SID): use IP-in-IP or MPLS")

// checkMicroSIDs reads the routes back: a kernel that does not know flavours
// ignores them, and would drop what has labels.
func checkMicroSIDs() error {
	list, err := readSIDs()
	if err != nil {
		return kernel.Explain(fmt.Errorf("list the routes of labels: %w", err))
	}
	for _, s := range list {
		if s.action == nl.SEG6_LOCAL_ACTION_END_X && !s.micro {
			return ErrNoSIDs
		}
	}
	return nil
}

// routeID6 is the key by which the kernel keeps one IPv6 route.
type routeID6 struct {
	prefix netip.Prefix
	metric int
}

// syncRoutes6 is syncRoutes for IPv6. Routes over ports that are down are left
// for later: the kernel has removed them, and takes none.
func syncRoutes6(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	old, err := plannedRoutes6(h)
	if err != nil {
		if !p.has6() && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)) {
			return 0, nil // no IPv6, and none is wanted
		}
		return 0, kernel.Explain(fmt.Errorf("list the IPv6 routes: %w", err))
	}
	planned, err := netlinkRoutes6(p, ports)
	if err != nil {
		return 0, err
	}
	for _, want := range planned {
		id := kernelRouteID6(want.Route)
		was, ok := old[id]
		delete(old, id)
		if ok && routeKey6(was) == routeKey6(want.Route) {
			continue
		}
		err := h.RouteReplace(&want.Route)
		switch {
		case err == nil:
			changed++
		case want.Encap != nil && (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)):
			return changed, fmt.Errorf("%w: %s: %w", ErrNoSIDs, want.command, err)
		default:
			return changed, kernel.Explain(fmt.Errorf("%s: %w", want.command, err))
		}
	}
	for id, was := range old {
		gone := netlink.Route{Dst: kernel.IPNet(id.prefix), Priority: id.metric, LinkIndex: was.LinkIndex, Protocol: kernel.RouteProtocol}
		if was.Type == unix.RTN_UNREACHABLE {
			gone.Type, gone.LinkIndex = unix.RTN_UNREACHABLE, 0
		}
		if err := h.RouteDel(&gone); err != nil && !errors.Is(err, unix.ESRCH) {
			return changed, kernel.Explain(fmt.Errorf("remove the route to %s: %w", id.prefix, err))
		}
		changed++
	}
	return changed, nil
}

func plannedRoutes6(h *netlink.Handle) (map[routeID6]netlink.Route, error) {
	have, err := kernel.Dumped(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Protocol: kernel.RouteProtocol}, netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return nil, err
	}
	planned := make(map[routeID6]netlink.Route, len(have))
	for _, r := range have {
		planned[kernelRouteID6(r)] = r
	}
	return planned, nil
}

// wantedRoute6 is a route as it is planned, and how ip would say it.
type wantedRoute6 struct {
	netlink.Route
	command string
}

// netlinkRoutes6 returns the planned routes over ports that are up, next hops
// before the labels that lead to them.
func netlinkRoutes6(p NodePlan, ports []netlink.Link) (list []wantedRoute6, err error) {
	index, up := portIndexes(ports), make(map[string]bool)
	for _, port := range ports {
		up[port.Attrs().Name] = port.Attrs().Flags&net.FlagUp != 0
	}
	for _, r := range p.Routes6 {
		if len(r.Via) > 0 {
			r.Via = slices.DeleteFunc(slices.Clone(r.Via), func(h Hop) bool { return !up[h.Port] })
			if len(r.Via) == 0 {
				continue
			}
		}
		n, err := netlinkRoute(r, index)
		if err != nil {
			return nil, err
		}
		n.Family = netlink.FAMILY_V6
		if n.Priority == 0 {
			n.Priority = defaultMetric6
		}
		list = append(list, wantedRoute6{n, r.command()})
	}
	for _, s := range slices.Concat(p.SIDs, p.Local) {
		if !up[s.Port] {
			continue
		}
		list = append(list, wantedRoute6{netlink.Route{
			Family: netlink.FAMILY_V6, Dst: kernel.IPNet(s.Prefix), Type: unix.RTN_UNICAST, Table: unix.RT_TABLE_MAIN,
			Protocol: kernel.RouteProtocol, Priority: s.Metric, LinkIndex: index[s.Port], Encap: newSIDEncap(s),
		}, s.command()})
	}
	return list, nil
}

func kernelRouteID6(r netlink.Route) routeID6 {
	if r.Dst == nil {
		return routeID6{netip.PrefixFrom(netip.IPv6Unspecified(), 0), r.Priority}
	}
	addr, _ := netip.AddrFromSlice(r.Dst.IP.To16())
	bits, _ := r.Dst.Mask.Size()
	return routeID6{netip.PrefixFrom(addr, bits), r.Priority}
}

// routeKey6 is what two routes of one routeID6 must share to be the same. The
// port of a route that refuses is the kernel's choice.
func routeKey6(r netlink.Route) string {
	if r.Type == unix.RTN_UNREACHABLE {
		return "unreachable"
	}
	action := ""
	switch e := r.Encap.(type) {
	case *sidEncap:
		action = e.String()
	case *netlink.SEG6LocalEncap:
		action = e.String()
	}
	return fmt.Sprintf("%s %s %s", hopKeys(r), r.Src, action)
}
