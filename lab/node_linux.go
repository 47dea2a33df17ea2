package lab

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
)

// create makes a node's namespace without IPv6, whose neighbour discovery and multicast
// reports would appear in counts of packets. Where labels need IPv6, ports have the planned
// addresses only.
func (b *builder) create(n topology.Node) error {
	return kernel.CreateNamespace(b.cfg.namespace(n.Name), func() error {
		var r fabric.Report
		settings := []kernel.Sysctl{
			{Key: "net.ipv6.conf.all.disable_ipv6", Value: "1", Optional: true},
			{Key: "net.ipv6.conf.default.disable_ipv6", Value: "1", Optional: true},
		}
		if b.cfg.SRv6 {
			settings = []kernel.Sysctl{{Key: "net.ipv6.conf.default.addr_gen_mode", Value: "1"}} // none
		}
		if b.cfg.Graph != nil {
			// BGP's neighbours are known by addresses that the kernel makes of the ports'. They
			// are in use at once: nobody else has them.
			settings = []kernel.Sysctl{{Key: "net.ipv6.conf.default.accept_dad", Value: "0"}}
		}
		_, err := r.SetSysctls(settings)
		return err
	})
}

// firstIndex is the first interface index of the links' lower ends. The upper
// ends get the kernel's next, from 2. If both ends of a veth have the same index,
// the kernel takes it for a link to itself and reports it down 0.4 s late.
const firstIndex = 1000

// wire makes a node's links to the layer above.
func (b *builder) wire(n topology.Node) error {
	return kernel.InNamespace(b.cfg.namespace(n.Name), func() error {
		for _, port := range b.cfg.ports(n.ID) {
			if !port.Up {
				continue
			}
			if err := b.wireLink(n, port); err != nil {
				return err
			}
		}
		return nil
	})
}

// wireLink makes a link, each end in its namespace from the start. It runs in the
// lower one's.
func (b *builder) wireLink(n topology.Node, port topology.Port) error {
	// Opened here, so that an index means one in this namespace.
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return kernel.Explain(err)
	}
	defer h.Close()
	upper := b.cfg.plant().Node(port.Peer).Name
	peer, err := kernel.OpenNamespace(b.cfg.namespace(upper))
	if err != nil {
		return err
	}
	defer peer.Close()
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name = b.cfg.portName(n.ID, port.Index)
	veth.Index = firstIndex + int(port.Link)
	veth.MTU = b.cfg.linkMTU(n)
	veth.HardwareAddr = portMAC(n.ID, port.Index)
	veth.PeerName = b.cfg.portName(port.Peer, port.PeerPort)
	veth.PeerHardwareAddr = portMAC(port.Peer, port.PeerPort)
	veth.PeerNamespace = netlink.NsFd(peer)
	if err := h.LinkAdd(veth); err != nil {
		return kernel.Explain(fmt.Errorf("veth link to %s (kernel option VETH): %w", upper, err))
	}
	return nil
}

// portMAC makes up a locally administered address that says whose it is.
func portMAC(id topology.NodeID, port int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, byte(id >> 16), byte(id >> 8), byte(id), byte(port)}
}

// configure applies the node's plan, and what only the lab needs: rates,
// neighbours known from the start, host settings.
func (b *builder) configure(n topology.Node) error {
	plan, err := b.cfg.plan(n.ID)
	if err != nil {
		return err
	}
	return kernel.InNamespace(b.cfg.namespace(n.Name), func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return kernel.Explain(err)
		}
		defer h.Close()
		report, err := fabric.Apply(plan)
		if err != nil {
			return err
		}
		for i, port := range b.cfg.ports(n.ID) {
			link, err := h.LinkByName(plan.Ports[i].Name)
			if err != nil {
				return err
			}
			if err := b.configurePort(h, n, port, link); err != nil {
				return fmt.Errorf("port %s: %w", plan.Ports[i].Name, err)
			}
		}
		if n.Layer == topology.LayerHost {
			_, err := report.SetSysctls(hostSysctls)
			b.note(report.Notes...)
			return err
		}
		b.note(report.Notes...)
		if err := b.balance(n, plan); err != nil {
			return err
		}
		return b.meter(n, plan)
	})
}

func (b *builder) configurePort(h *netlink.Handle, n topology.Node, port topology.Port, link netlink.Link) error {
	index := link.Attrs().Index
	if err := b.cfg.setNeighbour(h, n.ID, port, index); err != nil {
		return err
	}
	if !b.cfg.Unlimited {
		if err := b.limitPort(h, port, link); err != nil {
			return err
		}
	}
	if n.Layer != topology.LayerHost || b.cfg.GSOMaxBytes == 0 {
		return nil
	}
	if err := h.LinkSetGSOIPv4MaxSize(link, b.cfg.GSOMaxBytes); err != nil {
		return fmt.Errorf("largest super-segment (Linux 6.3): %w", err)
	}
	return nil
}

// hostSysctls give TCP buffers for several paths' worth of data in flight. A connection does
// not begin with what former ones to the same host have learnt: runs would depend on those
// before.
var hostSysctls = []kernel.Sysctl{
	{Key: "net.ipv4.tcp_rmem", Value: "4096 131072 6291456"},
	{Key: "net.ipv4.tcp_wmem", Value: "4096 65536 4194304"},
	{Key: "net.ipv4.tcp_no_metrics_save", Value: "1"},
	{Key: "net.mptcp.enabled", Value: "1", Optional: true},
}
