package kerneltest

import (
	"sync"
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

var macvlan struct {
	asked   sync.Once
	refused error
}

// Macvlan says why this kernel has no macvlan over an Ethernet device, nil if it has. It makes
// one by itself, so that a test that wants weft's does not ask weft whether there can be one.
func Macvlan(t testing.TB) error {
	t.Helper()
	macvlan.asked.Do(func() {
		ns := Namespace(t, "macvlan")
		EthernetPair(t, ns, "p0", "p1")
		err := kernel.InNamespace(ns, func() error {
			lower, err := netlink.LinkByName("p0")
			if err != nil {
				return err
			}
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.ParentIndex = "above", lower.Attrs().Index
			macvlan.refused = netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_SOURCE})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return macvlan.refused
}

// NeedMacvlan skips a test where there is no macvlan.
func NeedMacvlan(t testing.TB) {
	t.Helper()
	if err := Macvlan(t); err != nil {
		t.Skipf("makes a macvlan (kernel option MACVLAN): %v", err)
	}
}
