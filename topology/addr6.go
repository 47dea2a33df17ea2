package topology

import "net/netip"

// The first 12 bytes of the addresses below. Both end in an IPv4 address, so
// that each follows from the other, and "weft" stands in both.
var (
	unique6 = [12]byte{0xfd, 0x77, 0x65, 0x66, 0x74}
	local6  = [12]byte{0: 0xfe, 1: 0x80, 8: 0x77, 9: 0x65, 10: 0x66, 11: 0x74}
)

// Addr6 returns the IPv6 address that belongs to the IPv4 address a of a node or an
// embedded stack: fd77:6566:7400::/96 and a's four bytes. It is the source of a packet that
// carries labels in IPv6. For an address that is not IPv4 it returns the zero Addr.
func Addr6(a netip.Addr) netip.Addr { return within6(unique6, a) }

// Addr4 returns the IPv4 address that a is or, by Addr6, belongs to. For other addresses it
// returns the zero Addr.
func Addr4(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	b := a.As16()
	if a.Is6() && a.Zone() == "" && [12]byte(b[:12]) == unique6 {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.Addr{}
}

// LinkLocal6 returns the address that a node whose IPv4 address is a has on each of its
// ports, so that its neighbours need not ask for it: fe80::7765:6674:0:0/96 and a's four
// bytes. For an address that is not IPv4 it returns the zero Addr.
func LinkLocal6(a netip.Addr) netip.Addr { return within6(local6, a) }

func within6(first [12]byte, a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is4() {
		return netip.Addr{}
	}
	var b [16]byte
	copy(b[:], first[:])
	four := a.As4()
	copy(b[12:], four[:])
	return netip.AddrFrom16(b)
}
