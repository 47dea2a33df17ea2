package stack

import (
	"net/netip"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"weft/third_party/netstack/tcp"
)

// families are the network protocols of a Host, for netstack. IPv6 asks nobody for anything:
// no neighbours, routers, multicast groups, nor whether its address is taken. The fabric
// knows each host's address. below is the device or the underlay.
func families(o *gstack.Options, six bool, below any) {
	o.NetworkProtocols = []gstack.NetworkProtocolFactory{ipv4.NewProtocol}
	withTCP := tcp.NewProtocolCUBIC
	if q, ok := below.(QueueDevice); ok {
		withTCP = tcp.NewProtocolHeldBack(q.Holds)
	}
	o.TransportProtocols = []gstack.TransportProtocolFactory{withTCP, udp.NewProtocol, icmp.NewProtocol4}
	if six {
		o.NetworkProtocols = append(o.NetworkProtocols, ipv6.NewProtocolWithOptions(ipv6.Options{}))
		o.TransportProtocols = append(o.TransportProtocols, icmp.NewProtocol6)
	}
}

// routes are those of a Host: everything goes to its one interface. mtu6 is that of IPv6
// packets, in bytes; 0: there are none.
func routes(mtu6 int) []tcpip.Route {
	all := []tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}}
	if mtu6 > 0 {
		all = append(all, tcpip.Route{Destination: header.IPv6EmptySubnet, NIC: nic, MTU: uint32(mtu6)})
	}
	return all
}

// addresses returns those of the Host, IPv4 first.
func (h *Host) addresses() []netip.Addr {
	if h.address6.IsValid() {
		return []netip.Addr{h.address, h.address6}
	}
	return []netip.Addr{h.address}
}

// owns reports whether an address is one of the Host's.
func (h *Host) owns(a netip.Addr) bool { return slices.Contains(h.addresses(), a) }

// protocolAddress is an address as netstack takes its own.
func protocolAddress(a netip.Addr) tcpip.ProtocolAddress {
	return tcpip.ProtocolAddress{Protocol: familyOf(a), AddressWithPrefix: netstackAddress(a).WithPrefix()}
}

// familyOf is the network protocol of an address.
func familyOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// netstackAddress is an address as netstack has it.
func netstackAddress(a netip.Addr) tcpip.Address {
	if a.Is4() {
		return tcpip.AddrFrom4(a.As4())
	}
	return tcpip.AddrFrom16(a.As16())
}

// fullAddress is an address and a port as netstack has them. An unspecified address means
// any.
func fullAddress(a netip.AddrPort) tcpip.FullAddress {
	f := tcpip.FullAddress{NIC: nic, Port: a.Port()}
	if !a.Addr().IsUnspecified() {
		f.Addr = netstackAddress(a.Addr())
	}
	return f
}

// addrPort is the inverse of fullAddress. Netstack has the peers of a socket of both
// families in mapped form (RFC 4291 §2.5.5.2).
func addrPort(a tcpip.FullAddress) netip.AddrPort {
	switch a.Addr.Len() {
	case 4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr.As4()), a.Port)
	case 16:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr.As16()).Unmap(), a.Port)
	}
	return netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port)
}
