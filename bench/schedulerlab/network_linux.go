package schedulerlab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"weft/hedera/wire"
	"weft/internal/kernel"
	"weft/lab"
	"weft/topology"
)

// schedulerAddress is the scheduler's on the control network.
var schedulerAddress = netip.MustParseAddr("192.168.255.254")

// schedulerAt is where nodes report to it.
var schedulerAt = netip.AddrPortFrom(schedulerAddress, wire.Port)

// controlDevice is a node's device on the control network.
const controlDevice = "control"

// mostNodes bounds the nodes of a control network.
const mostNodes = 250

// makeNetwork makes a namespace for the scheduler, with a cable to each node.
func makeNetwork(l *lab.Lab, nodes []topology.Node) (name string, err error) {
	if len(nodes) > mostNodes {
		return "", fmt.Errorf("control network: %d nodes, at most %d", len(nodes), mostNodes)
	}
	name = "weft-" + l.Config.Name + "-control"
	if err := kernel.CreateNamespace(name, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return bringUp(lo, schedulerAddress)
	}); err != nil {
		return "", err
	}
	for i, n := range nodes {
		if err := connect(l, name, n, i); err != nil {
			return name, fmt.Errorf("control network: %w", kernel.Explain(err))
		}
	}
	return name, nil
}

// connect lays the cable to the ith node.
func connect(l *lab.Lab, name string, n topology.Node, i int) error {
	ns, err := kernel.OpenNamespace(l.Namespace(n.ID))
	if err != nil {
		return err
	}
	defer ns.Close()
	own := netip.AddrFrom4([4]byte{192, 168, 255, byte(1 + i)})
	near := fmt.Sprint("n", i)
	err = kernel.InNamespace(name, func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: near}, PeerName: controlDevice, PeerNamespace: netlink.NsFd(ns)}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		return bringUp(veth, netip.Addr{}, own, n.Addr) // by which it speaks
	})
	if err != nil {
		return err
	}
	return l.Do(n.ID, func() error {
		link, err := netlink.LinkByName(controlDevice)
		if err != nil {
			return err
		}
		return bringUp(link, own, schedulerAddress)
	})
}

// bringUp gives a device an address, unless it is none, and routes to others.
func bringUp(link netlink.Link, own netip.Addr, to ...netip.Addr) error {
	if own.IsValid() {
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: single(own)}); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, a := range to {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: single(a), Scope: netlink.SCOPE_LINK}); err != nil {
			return err
		}
	}
	return nil
}

func single(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}
