package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/topology"
	"weft/topology/graph"
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
	if err := l.Config.setNeighbour(e.node.Handle, e.id, e.port, e.link.Attrs().Index); err != nil {
		return err
	}
	plan, err := l.Config.plan(e.id)
	if err != nil {
		return err
	}
	return fabric.RestorePort(e.node.Handle, plan, e.link)
}

// setNeighbour makes the other end of a port's link known.
func (c Config) setNeighbour(h *netlink.Handle, id topology.NodeID, port topology.Port, index int) error {
	for _, a := range c.neighbours(id, port) {
		n := netlink.Neigh{
			LinkIndex: index, Family: familyOf(a), State: netlink.NUD_PERMANENT,
			IP:           a.AsSlice(),
			HardwareAddr: portMAC(port.Peer, port.PeerPort),
		}
		if err := h.NeighSet(&n); err != nil {
			return fmt.Errorf("neighbour %v: %w", a, err)
		}
	}
	return nil
}

// neighbours returns the addresses of a port's other end that routes lead to. Switches of a
// Graph find each other by themselves.
func (c Config) neighbours(id topology.NodeID, port topology.Port) (list []netip.Addr) {
	peer := c.plant().Node(port.Peer)
	switch {
	case c.Graph == nil && c.SRv6:
		return []netip.Addr{peer.Addr, topology.LinkLocal6(peer.Addr)}
	case c.Graph == nil:
		return []netip.Addr{peer.Addr}
	case c.plant().Node(id).Layer != topology.LayerHost && peer.Layer != topology.LayerHost:
		return nil
	}
	end := fabric.GraphPorts(c.Graph, graph.NodeID(id))[port.Index]
	for _, a := range []netip.Addr{end.PeerAddr, end.PeerAddr6} {
		if a.IsValid() {
			list = append(list, a)
		}
	}
	return list
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
