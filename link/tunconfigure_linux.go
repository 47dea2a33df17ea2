package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// maxTCPHeader is what the kernel's TCP takes off a device's bound for
	// headers: MAX_TCP_HEADER (net/tcp.h), as kernels with tunnels have it.
	maxTCPHeader = 320 + 1
	// maxGSO is GSO_LEGACY_MAX_SIZE (linux/netdevice.h).
	maxGSO = 65536
)

func configure(name string, c TUNConfig) error {
	if !c.NoForwardCheck {
		if err := checkForwarding(c.hasIPv6()); err != nil {
			return err
		}
	}
	ifc, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(ifc, c.MTU-c.Overhead); err != nil {
		return fmt.Errorf("set MTU %d: %w", c.MTU-c.Overhead, err)
	}
	if c.PayloadMax > 0 {
		if err := setPayloadMax(ifc, c.PayloadMax); err != nil {
			return err
		}
	}
	if c.Address.IsValid() {
		// Nobody else is on the interface who could have the address, too, and
		// without the flag an IPv6 address cannot be used at once.
		addr := &netlink.Addr{IPNet: ipNet(c.Address), Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(ifc, addr); err != nil {
			return fmt.Errorf("add address %s: %w", c.Address, err)
		}
	}
	if err := netlink.LinkSetUp(ifc); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	for _, p := range c.Routes {
		route := &netlink.Route{LinkIndex: ifc.Attrs().Index, Dst: ipNet(p), Scope: netlink.SCOPE_LINK}
		switch err := netlink.RouteAdd(route); {
		case errors.Is(err, unix.EEXIST):
			return fmt.Errorf("route %s exists already: is another weft using this address here? %w", p, err)
		case err != nil:
			return fmt.Errorf("add route %s: %w", p, err)
		}
	}
	return nil
}

func setPayloadMax(ifc netlink.Link, payload int) error {
	size := maxGSO
	if payload > 0 {
		size = min(payload+maxTCPHeader, maxGSO)
	}
	if err := netlink.LinkSetGSOIPv4MaxSize(ifc, size); err != nil {
		return fmt.Errorf("set longest super-segment %d: %w", size, err)
	}
	return nil
}

// SetPayloadMax changes what TUNConfig.PayloadMax says, for connections that are opened from now
// on. Others keep the bound that they had. The interface must be in the network namespace of the
// calling thread.
func (t *TUN) SetPayloadMax(payload int) error {
	if payload < 0 {
		return errPayloadMax(payload)
	}
	ifc, err := netlink.LinkByName(t.name)
	if err == nil {
		err = setPayloadMax(ifc, payload)
	}
	if err != nil {
		return fmt.Errorf("tun %s: %w", t.name, err)
	}
	return nil
}

func checkForwarding(ipv6 bool) error {
	families := []struct{ name, file, knob string }{
		{"IPv4", "/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"},
		{"IPv6", "/proc/sys/net/ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding"},
	}
	if !ipv6 {
		families = families[:1]
	}
	for _, f := range families {
		if b, err := os.ReadFile(f.file); err == nil && b[0] == '0' {
			return fmt.Errorf("the kernel does not forward %s here, so packets could not pass between the interface and the fabric: sysctl -w %s=1", f.name, f.knob)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{
		IP:   p.Addr().AsSlice(),
		Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
	}
}
