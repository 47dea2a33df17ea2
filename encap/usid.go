package encap

import (
	"errors"
	"fmt"
	"net/netip"
)

// SIDBlock holds the first 16 bits of every address of SIDs, the dense form of micro-SIDs that
// Linux alone has. An operator's own SIDs may be anywhere (NewSIDOuter). IANA keeps this block
// for SRv6 alone (RFC 9602), so no filter or route for other addresses matches it.
var SIDBlock = netip.PrefixFrom(netip.AddrFrom16([16]byte{sidBlock0, sidBlock1}), 8*sidFirst)

const (
	// SIDDecap is the micro-SID of the node that takes the outer header off and routes
	// the inner packet by its main table (End.DX4, RFC 8986 §4.5).
	SIDDecap = 0xfe
	// SIDDecap6 is the same for an IPv6 packet inside (End.DT6, RFC 8986 §4.6). It is
	// another SID, since End.DX4 takes nothing but IPv4, and Linux has End.DT46 only with a
	// VRF.
	SIDDecap6 = 0xfd
	// MaxSIDPort is the highest port that has a micro-SID. Port p has p+1; values from
	// 0xe0 on are not ports.
	MaxSIDPort = 0xde
)

const (
	sidBlock0, sidBlock1 = 0x5f, 0x00
	sidFirst             = 2                 // the byte of the active SID, behind the block
	maxSIDs              = 16 - sidFirst - 1 // ports that an address has room for, besides SIDDecap
)

// Errors of ParseSIDs. They are returned unwrapped.
var (
	ErrSIDBlock = errors.New("encap: address is not in the block of micro-SIDs")
	ErrSIDPort  = errors.New("encap: micro-SID that is neither a port nor decapsulation")
	ErrSIDEnd   = errors.New("encap: micro-SIDs end before one says decapsulate, or go on behind it")
)

// SIDs returns the IPv6 destination that leads a packet out of these ports, one at each
// switch. The next switch decapsulates the packet (RFC 9800, NEXT-C-SID). The address is
// 16 bits of SIDBlock, then 8-bit micro-SIDs, left-aligned, then zeros. Ports 2, 3, 1, 0
// are 5f00:304:201:fe00::. A packet without ports is decapsulated at once. Errors name
// the port.
func SIDs(ports []int) (netip.Addr, error) {
	if len(ports) > maxSIDs {
		return netip.Addr{}, fmt.Errorf("encap: %d ports on a path, but an address of micro-SIDs has room for %d", len(ports), maxSIDs)
	}
	a := [16]byte{sidBlock0, sidBlock1}
	for i, port := range ports {
		if port < 0 || port > MaxSIDPort {
			return netip.Addr{}, fmt.Errorf("encap: port %d, number %d on the path, has no micro-SID: must be from 0 to %d", port, i, MaxSIDPort)
		}
		a[sidFirst+i] = byte(port + 1)
	}
	a[sidFirst+len(ports)] = SIDDecap
	return netip.AddrFrom16(a), nil
}

// EndIn6 makes the labels in an IPv6 outer header, which come from SIDs, end in SIDDecap6,
// for an IPv6 packet inside. Other destinations stay as they are. Outer.Encapsulate does so
// itself; who writes the destination anew must do it again.
func EndIn6(header []byte) {
	endIn6((*[16]byte)(header[24:]))
}

func endIn6(a *[16]byte) {
	if a[0] != sidBlock0 || a[1] != sidBlock1 {
		return
	}
	for i := len(a) - 1; i >= sidFirst; i-- {
		if a[i] == SIDDecap {
			a[i] = SIDDecap6
		}
		if a[i] != 0 {
			return
		}
	}
}

// ParseSIDs is the inverse of SIDs, for IPv4 or IPv6 inside. Errors: ErrSIDBlock, ErrSIDPort, ErrSIDEnd.
func ParseSIDs(addr netip.Addr) (ports []int, err error) {
	if !SIDBlock.Contains(addr) {
		return nil, ErrSIDBlock
	}
	a := addr.As16()
	for {
		sid, more := PopSID(&a)
		end := sid == SIDDecap || sid == SIDDecap6
		switch {
		case more == end:
			return nil, ErrSIDEnd
		case end:
			return ports, nil
		case sid == 0:
			return nil, ErrSIDEnd
		case sid > MaxSIDPort+1:
			return nil, ErrSIDPort
		}
		ports = append(ports, int(sid)-1)
	}
}

// PopSID makes the next micro-SID of a destination the active one, as a switch with a
// NEXT-C-SID behaviour does (RFC 9800 §4.1). It returns the one that was active, 0 if
// there was none.
//
// It returns false, and changes nothing, if only zeros follow the active SID. For
// SIDDecap and SIDDecap6 that is correct. For a port the stack ends too early, and the packet must be
// dropped. It also returns false, with 0, outside SIDBlock.
func PopSID(a *[16]byte) (sid byte, ok bool) {
	if a[0] != sidBlock0 || a[1] != sidBlock1 {
		return 0, false
	}
	sid = a[sidFirst]
	if [16 - sidFirst - 1]byte(a[sidFirst+1:]) == [16 - sidFirst - 1]byte{} {
		return sid, false
	}
	copy(a[sidFirst:], a[sidFirst+1:])
	a[15] = 0
	return sid, true
}
