package lab

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/fabric"
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
	plan, err := l.Config.plan(e.id)
	if err != nil {
		return err
	}
	return fabric.RestorePort(e.node.Handle, plan, e.link)
}

// setNeighbour makes the other end of a port's link known.
func (c Config) setNeighbour(h *netlink.Handle, port topology.Port, index int) error {
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
