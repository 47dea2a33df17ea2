package encap

import (
	"encoding/binary"
	"errors"
)

// Errors of CheckZeroChecksum.
var (
	ErrUDPPartial   = errors.New("encap: no outer checksum covers the inner one, which is partial")
	ErrUDPUnguarded = errors.New("encap: neither the outer nor the inner UDP checksum is computed")
)

const protoUDP = 17

// CheckZeroChecksum reports whether a packet without a MAC may be sent, or may have been
// sent, under an outer UDP checksum of 0. RFC 6935 §5 allows that over IPv6 to tunnels
// alone, under the conditions of RFC 6936. These are met as follows:
//
//   - This function checks, at both ends, that the inner packet is guarded by a
//     checksum of its own: its IPv4 header is right, its transport checksum is
//     not partial, and it is not a UDP packet without a checksum (RFC 6936 §5).
//   - The receiver accepts only known outer source addresses and ports that have
//     been opened for it, since a damaged address may have brought any datagram
//     to it (§4; the kernel's UDP_NO_CHECK6_RX is per socket).
//   - A datagram changes only the state of the flow inside. A damaged header does
//     no more than reordering does: numbers are hints, and feedback and reserved
//     flags are checked.
//   - A datagram is never fragmented: the underlay sets DF.
//
// A receiver cannot ask the kernel whether a checksum was 0. If it has allowed zeros over
// IPv6, it uses this function on everything. Over IPv4, where everybody may send zeros,
// it relies on the sender. With a MAC none of this is needed. IPv6 extension headers are
// not followed.
//
// inner is what ParseUDP has returned. Errors: ErrUDPPartial, ErrChecksum,
// ErrUDPUnguarded.
func CheckZeroChecksum(h UDPHeader, inner []byte) error {
	if h.Partial {
		return ErrUDPPartial
	}
	var protocol byte
	var payload []byte
	switch inner[0] >> 4 {
	case 4:
		ihl := int(inner[0]&0xf) * 4
		if !valid(inner[:ihl]) {
			return ErrChecksum
		}
		if binary.BigEndian.Uint16(inner[6:])&0x1fff != 0 {
			return nil // a later fragment has no UDP header
		}
		protocol, payload = inner[9], inner[ihl:]
	case 6:
		protocol, payload = inner[6], inner[40:]
	}
	if protocol == protoUDP && len(payload) >= 8 && binary.BigEndian.Uint16(payload[6:]) == 0 {
		return ErrUDPUnguarded
	}
	return nil
}
