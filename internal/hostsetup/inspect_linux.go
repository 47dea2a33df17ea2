package hostsetup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/hostprog"
	"weft/internal/kernel"
	"weft/topology"
)

// Uplink is a host's way into the fabric.
type Uplink struct {
	Name    string
	Index   int        // the kernel's number, which stays when the device gets another name
	Up      bool       // administratively
	Dark    bool       // up, but without a carrier
	Gateway netip.Addr // the zero Addr when the destination is on the link
	MTU     int        // bytes
	Strict  bool       // its reverse path filter, by its own setting or by that of all

	// Advertised says that it accepts routers' IPv6 advertisements, as long as the host
	// does not forward IPv6.
	Advertised bool
}

// FindUplink asks the kernel how it would reach an address. If name is not "",
// the way must lead over that device.
func FindUplink(to netip.Addr, name string) (Uplink, error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return Uplink{}, kernel.Explain(err)
	}
	defer h.Close()
	if name != "" {
		if _, err := kernel.Links(h, []string{name}); err != nil {
			return Uplink{}, fmt.Errorf("uplink: %w", err)
		}
	}
	routes, err := h.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{Oif: name})
	if err != nil || len(routes) == 0 {
		return Uplink{}, fmt.Errorf("uplink: no route to %s: %w; add one, or name uplink and gateway", to, errors.Join(err, unix.ENETUNREACH))
	}
	l, err := h.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return Uplink{}, fmt.Errorf("uplink: %w", err)
	}
	if l.Attrs().Flags&unix.IFF_LOOPBACK != 0 {
		return Uplink{}, fmt.Errorf("uplink: the route to %s leads to %s; name the device that leads into the fabric", to, l.Attrs().Name)
	}
	u, err := describeUplink(l)
	u.Gateway, _ = netip.AddrFromSlice(routes[0].Gw)
	u.Gateway = u.Gateway.Unmap()
	return u, err
}

// LookAtUplink describes a device anew, by the number that FindUplink has given, or by its
// name if that is 0. The Gateway stays as it is. The error is ErrUplinkGone if there is no
// such device.
func LookAtUplink(was Uplink) (Uplink, error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return Uplink{}, kernel.Explain(err)
	}
	defer h.Close()
	var l netlink.Link
	if was.Index != 0 {
		l, err = h.LinkByIndex(was.Index)
	} else {
		l, err = h.LinkByName(was.Name)
	}
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return was, fmt.Errorf("uplink %s: %w", was.Name, hostprog.ErrUplinkGone)
	}
	if err != nil {
		return was, kernel.Explain(fmt.Errorf("uplink %s: %w", was.Name, err))
	}
	u, err := describeUplink(l)
	u.Gateway = was.Gateway
	return u, err
}

func describeUplink(l netlink.Link) (Uplink, error) {
	a := l.Attrs()
	u := Uplink{Name: a.Name, Index: a.Index, MTU: a.MTU, Up: a.Flags&net.FlagUp != 0, Dark: a.RawFlags&(unix.IFF_UP|unix.IFF_RUNNING) == unix.IFF_UP}
	own, err := readFilter(u.Name)
	if err != nil {
		return u, err
	}
	all, err := ReverseFilter()
	u.Strict = max(own, all) == 1 // 2, loose, is the milder one
	ra, none := readSetting(confKey6(u.Name, "accept_ra"))
	u.Advertised = none == nil && ra == "1" // without IPv6 there is none
	return u, err
}

// ReverseFilter returns net.ipv4.conf.all.rp_filter of the calling thread's
// network namespace.
func ReverseFilter() (int, error) { return readFilter("all") }

func readFilter(device string) (int, error) {
	v, err := readSetting(confKey(device, "rp_filter"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(v)
}

// FindHost returns the one address of this network namespace that t gives to a
// host's kernel.
func FindHost(t *topology.Topology) (netip.Addr, error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return netip.Addr{}, kernel.Explain(err)
	}
	defer h.Close()
	addrs, err := kernel.Dumped(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return netip.Addr{}, kernel.Explain(fmt.Errorf("list the addresses: %w", err))
	}
	var found netip.Addr
	for _, a := range addrs {
		addr, ok := netip.AddrFromSlice(a.IP.To4())
		if !ok || addr == found || !isHost(t, addr) {
			continue
		}
		if found.IsValid() {
			return netip.Addr{}, fmt.Errorf("%s and %s are both hosts of %s; say which one is meant", found, addr, t)
		}
		found = addr
	}
	if !found.IsValid() {
		return netip.Addr{}, fmt.Errorf("no address here is a host's of %s (such as %s); is it the right topology?", t, t.Node(0).Addr)
	}
	return found, nil
}

// HasAddress reports whether this network namespace has an IPv4 address.
func HasAddress(want netip.Addr) (bool, error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return false, kernel.Explain(err)
	}
	defer h.Close()
	addrs, err := kernel.Dumped(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return false, kernel.Explain(fmt.Errorf("list the addresses: %w", err))
	}
	return slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IP.Equal(want.AsSlice()) }), nil
}

func isHost(t *topology.Topology, addr netip.Addr) bool {
	id, ok := t.ByAddr(addr)
	return ok && t.Node(id).Layer == topology.LayerHost && t.Node(id).Addr == addr
}
