package hostprog

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
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

// neighbour joins two namespaces and returns the far end of the cable. Its Far is near's p0.
func neighbour(t *testing.T, near, far string) *kerneltest.Wire {
	t.Helper()
	cable(t, near, far)
	w := &kerneltest.Wire{}
	err := errors.Join(
		kernel.InNamespace(near, func() error {
			dev, err := net.InterfaceByName("p0")
			if err == nil {
				w.Far = dev.HardwareAddr
			}
			return err
		}),
		kernel.InNamespace(far, func() error {
			dev, err := net.InterfaceByName("p1")
			if err == nil {
				w.Own = dev.HardwareAddr
				w.FD, err = kerneltest.PacketSocket(t, dev.Index, nil)
			}
			return err
		}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// pretend makes a reader look alive, or dead, until further notice: so no test depends on
// how fast the machine is.
func (h *heart) pretend(t *testing.T, alive bool) {
	t.Helper()
	now, err := kernel.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	at := now + uint64(time.Hour)
	if !alive {
		at = now - uint64(SteerPatience) - 1
	}
	if err := h.set(at, errors.New("closed")); err != nil {
		t.Fatal(err)
	}
}
