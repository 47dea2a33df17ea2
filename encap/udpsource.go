package encap

import "net/netip"

// UDPInnerSource returns the source address of the inner packet of an unchecked datagram,
// to find the key to try. It returns false if there is none, or if it is encrypted: see
// UDPPair.
func UDPInnerSource(b []byte) (netip.Addr, bool) {
	if len(b) < UDPOverhead {
		return netip.Addr{}, false
	}
	inner := b[UDPOverhead:]
	if b[0]&udpHidden != 0 {
		return netip.Addr{}, false
	}
	if b[0]&udpSealed != 0 {
		if len(b) < UDPSealedOverhead {
			return netip.Addr{}, false
		}
		inner = b[UDPSealedOverhead:]
	}
	return InnerSource(inner)
}

// InnerSource returns the source address of an IPv4 or IPv6 packet. It returns false if
// the packet is too short to have one.
func InnerSource(inner []byte) (netip.Addr, bool) {
	switch {
	case len(inner) >= 20 && inner[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(inner[12:16])), true
	case len(inner) >= 40 && inner[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(inner[8:24])), true
	}
	return netip.Addr{}, false
}
