package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// errNoIPIP means that this kernel has not the devices that decapsulate.
var errNoIPIP = errors.New("the kernel has no module ipip, or none of ip6_tunnel")

// addIPIP makes a device for each bouncing address, the kernel's own
// decapsulator. Whether the kernel has any is found out by trying.
func addIPIP(h *netlink.Handle, addrs []netip.Addr) (changed int, err error) {
	for i, addr := range addrs {
		n, err := addIPIPDevice(h, decapDevice(i), addr)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

func addIPIPDevice(h *netlink.Handle, name string, addr netip.Addr) (changed int, err error) {
	link, err := h.LinkByName(name)
	if err == nil && decapsulates(link, addr) {
		return setUp(h, link)
	}
	if err == nil {
		if err := h.LinkDel(link); err != nil {
			return 0, kernel.Explain(fmt.Errorf("device %s: %w", name, err))
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	var tun netlink.Link = &netlink.Iptun{LinkAttrs: attrs, Local: addr.AsSlice(), Ttl: 64, PMtuDisc: 1, Proto: unix.IPPROTO_IPIP}
	if addr.Is6() {
		tun = &netlink.Ip6tnl{LinkAttrs: attrs, Local: addr.AsSlice(), Ttl: 64} // Proto 0: any inside
	}
	err = h.LinkAdd(tun)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return 0, errNoIPIP
	}
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("ipip device %s: %w", name, err))
	}
	_, err = setUp(h, tun)
	return 1, err
}

// decapsulates reports whether a device is the one that takes off what leads to an address.
func decapsulates(link netlink.Link, to netip.Addr) bool {
	switch have := link.(type) {
	case *netlink.Iptun:
		return have.Local.Equal(to.AsSlice())
	case *netlink.Ip6tnl:
		return have.Local.Equal(to.AsSlice())
	}
	return false
}

// setUp brings a link up.
func setUp(h *netlink.Handle, link netlink.Link) (changed int, err error) {
	if link.Attrs().Flags&net.FlagUp != 0 {
		return 0, nil
	}
	if err := h.LinkSetUp(link); err != nil {
		return 0, kernel.Explain(fmt.Errorf("bring %s up: %w", link.Attrs().Name, err))
	}
	return 1, nil
}
