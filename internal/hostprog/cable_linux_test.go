package hostprog

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

const (
	nearAddr = "10.0.0.2"
	farAddr  = "10.0.0.99"
)

// cable joins two namespaces, near's p0 with far's p1.
func cable(t *testing.T, near, far string) {
	t.Helper()
	peer, err := kernel.OpenNamespace(far)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	err = errors.Join(
		kernel.InNamespace(near, func() error {
			veth := netlink.NewVeth(netlink.NewLinkAttrs())
			veth.Name, veth.PeerName, veth.PeerNamespace = "p0", "p1", netlink.NsFd(peer)
			return netlink.LinkAdd(veth)
		}),
		addressUp(near, "p0", nearAddr),
		addressUp(far, "p1", farAddr),
	)
	if err != nil {
		t.Fatal(err)
	}
}

func addressUp(ns, device, addr string) error {
	return kernel.InNamespace(ns, func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return errors.Join(
			netlink.AddrAdd(link, &netlink.Addr{IPNet: kernel.IPNet(netip.PrefixFrom(netip.MustParseAddr(addr), 24))}),
			netlink.LinkSetUp(link))
	})
}
