package kerneltest

import (
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// EthernetPair makes two devices joined by a cable in a namespace.
func EthernetPair(t testing.TB, ns, name, peer string) {
	t.Helper()
	err := kernel.InNamespace(ns, func() error {
		veth := netlink.NewVeth(netlink.NewLinkAttrs())
		veth.Name, veth.PeerName = name, peer
		return netlink.LinkAdd(veth)
	})
	if err != nil {
		t.Fatal(err)
	}
}
