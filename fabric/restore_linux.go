package fabric

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RestorePort restores, after a port is up again, what the kernel forgot when it was set
// down: routes of the plan over it, IPv6 addresses and the routes of labels. h is of the
// node's network namespace.
func RestorePort(h *netlink.Handle, p NodePlan, port netlink.Link) error {
	if err := restoreRoutes(h, p, port.Attrs()); err != nil || !p.has6() {
		return err
	}
	// No agent changes these: there are no other ways for labels.
	_, err := restoreLabels(h, p)
	return err
}

// restoreRoutes adds to the node's routes what the plan has over a port and the kernel
// has not.
func restoreRoutes(h *netlink.Handle, p NodePlan, port *netlink.LinkAttrs) error {
	have, err := plannedRoutes(h)
	if err != nil {
		return err
	}
	links, err := p.links(h)
	if err != nil {
		return err
	}
	up := make(map[string]bool)
	for _, link := range links {
		up[link.Attrs().Name] = link.Attrs().Flags&net.FlagUp != 0
	}
	for _, route := range p.Routes {
		over := func(h Hop) bool { return h.Port == port.Name }
		if !slices.ContainsFunc(route.Via, over) || usesPort(have[route.id()], port.Index) {
			continue
		}
		route.Via = slices.DeleteFunc(slices.Clone(route.Via), func(h Hop) bool { return !up[h.Port] })
		n, err := netlinkRoute(route, portIndexes(links))
		if err != nil {
			return err
		}
		if err := h.RouteReplace(&n); err != nil && !errors.Is(err, unix.ENETDOWN) {
			return fmt.Errorf("%s: %w", route.command(), err)
		}
	}
	return nil
}

func usesPort(r netlink.Route, index int) bool {
	return r.LinkIndex == index ||
		slices.ContainsFunc(r.MultiPath, func(h *netlink.NexthopInfo) bool { return h.LinkIndex == index })
}
