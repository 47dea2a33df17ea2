package fabric

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
)

// linkEnd is a port of the lab, open.
type linkEnd struct {
	id   topology.NodeID
	port topology.Port
	node *nodeHandle
	link netlink.Link
}

// end opens one end of a link, with l.mu held.
func (l *Lab) end(link topology.LinkID, id topology.NodeID) (linkEnd, error) {
	n, err := l.node(id)
	if err != nil {
		return linkEnd{}, err
	}
	ports := l.Config.ports(id)
	i := slices.IndexFunc(ports, func(p topology.Port) bool { return p.Link == link })
	return linkEnd{id, ports[i], n, n.links[i]}, nil
}

// bringBack sets a port up again, and restores what the kernel forgot when it
// went down: its neighbour and its routes.
func (l *Lab) bringBack(e linkEnd) error {
	if err := e.node.LinkSetUp(e.link); err != nil {
		return err
	}
	if err := l.Config.setNeighbour(e.node.Handle, e.port, e.link.Attrs().Index); err != nil {
		return err
	}
	if err := l.restoreRoutes(e); err != nil {
		return err
	}
	return l.restoreLabels(e)
}

// setNeighbour makes the other end of a port's link known.
func (c LabConfig) setNeighbour(h *netlink.Handle, port topology.Port, index int) error {
	peer := c.Topology.Node(port.Peer).Addr
	n := netlink.Neigh{
		LinkIndex: index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT,
		IP:           peer.AsSlice(),
		HardwareAddr: portMAC(port.Peer, port.PeerPort),
	}
	if err := h.NeighSet(&n); err != nil {
		return fmt.Errorf("neighbour: %w", err)
	}
	if !c.SRv6 {
		return nil
	}
	n.Family, n.IP = netlink.FAMILY_V6, topology.LinkLocal6(peer).AsSlice()
	if err := h.NeighSet(&n); err != nil {
		return fmt.Errorf("IPv6 neighbour: %w", err)
	}
	return nil
}

// restoreLabels is restoreRoutes for addresses and routes of IPv6. No agent
// changes these: there are no other ways for labels.
func (l *Lab) restoreLabels(e linkEnd) error {
	if !l.Config.SRv6 {
		return nil
	}
	plan, err := l.Config.plan(e.id)
	if err != nil {
		return err
	}
	_, err = restoreLabels(e.node.Handle, plan)
	return err
}

// restoreRoutes adds to the node's routes what the lab's plan has over a port
// and the kernel has not.
func (l *Lab) restoreRoutes(e linkEnd) error {
	plan, err := l.Config.plan(e.id)
	if err != nil {
		return err
	}
	have, err := plannedRoutes(e.node.Handle)
	if err != nil {
		return err
	}
	links, err := kernel.Links(e.node.Handle, e.node.ports)
	if err != nil {
		return err
	}
	up := make(map[string]bool)
	for _, link := range links {
		up[link.Attrs().Name] = link.Attrs().Flags&net.FlagUp != 0
	}
	for _, route := range plan.Routes {
		over := func(h Hop) bool { return h.Port == e.link.Attrs().Name }
		if !slices.ContainsFunc(route.Via, over) || usesPort(have[route.id()], e.link.Attrs().Index) {
			continue
		}
		route.Via = slices.DeleteFunc(slices.Clone(route.Via), func(h Hop) bool { return !up[h.Port] })
		n, err := netlinkRoute(route, portIndexes(links))
		if err != nil {
			return err
		}
		if err := e.node.RouteReplace(&n); err != nil && !errors.Is(err, unix.ENETDOWN) {
			return fmt.Errorf("%s: %w", route.command(), err)
		}
	}
	return nil
}

func usesPort(r netlink.Route, index int) bool {
	return r.LinkIndex == index ||
		slices.ContainsFunc(r.MultiPath, func(h *netlink.NexthopInfo) bool { return h.LinkIndex == index })
}
