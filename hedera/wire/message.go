package wire

import (
	"encoding/binary"
	"net/netip"

	"weft/topoupdate"
)

const (
	// Port is the servers'.
	Port = 9341
	// MaxMessage is the longest message, in bytes of UDP payload: below any MTU.
	MaxMessage = 1200
	// MaxFlows is how many flows a node may have in a report, and placements in an answer.
	MaxFlows = 4096
)

const (
	magic       = 0x5748 // "WH"
	wireVersion = 1
)

// kinds of messages.
const (
	typeHello     = 1 // a node's
	typeReport    = 2 // a node's
	typeAnswer    = 3 // a server's, to a hello or to a report that is not for it
	typePlacement = 4 // a server's
)

// Layout of the header that all messages share. The key's number is where
// topoupdate.Keyring looks for it.
const (
	atVersion  = 2
	atType     = 3
	atKey      = 4 // 0: not signed
	atCount    = 6
	atFabric   = 8
	atNode     = 16
	atSession  = 32
	atCounter  = 40
	atHeard    = 48
	atEpoch    = 56
	headerSize = 64
	answerSize = 18 // what follows in an answer: the leader's address and port
	macSize    = 32
	room       = MaxMessage - macSize // for header and entries
)

// header is what all messages begin with.
type header struct {
	kind    byte
	count   int        // entries
	fabric  uint64     // fingerprint
	node    netip.Addr // the node's address, whichever side speaks
	session uint64     // the sender's
	counter uint64     // of the sender's messages in this session
	heard   uint64     // the receiver's session, as the sender has heard it; 0: not yet
	epoch   uint64     // of the leader that the sender knows of; 0: none
}

func appendHeader(b []byte, h *header) []byte {
	b = binary.BigEndian.AppendUint16(b, magic)
	b = append(b, wireVersion, h.kind, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(h.count))
	b = binary.BigEndian.AppendUint64(b, h.fabric)
	node := h.node.As16()
	b = append(b, node[:]...)
	b = binary.BigEndian.AppendUint64(b, h.session)
	b = binary.BigEndian.AppendUint64(b, h.counter)
	b = binary.BigEndian.AppendUint64(b, h.heard)
	return binary.BigEndian.AppendUint64(b, h.epoch)
}

// setCount enters how many entries a message has.
func setCount(b []byte, n int) { binary.BigEndian.PutUint16(b[atCount:], uint16(n)) }

// parseHeader reads the header of a message of a fabric. It allocates nothing.
//
// Errors: RejectTruncated, RejectOversized, RejectVersion, RejectType, RejectFabric.
func parseHeader(b []byte, fabric uint64) (h header, err error) {
	switch {
	case len(b) < headerSize:
		return h, RejectTruncated
	case len(b) > MaxMessage:
		return h, RejectOversized
	case binary.BigEndian.Uint16(b) != magic || b[atVersion] != wireVersion:
		return h, RejectVersion
	case b[atType] < typeHello || b[atType] > typePlacement:
		return h, RejectType
	case binary.BigEndian.Uint64(b[atFabric:]) != fabric:
		return h, RejectFabric
	}
	return header{
		kind:    b[atType],
		count:   int(binary.BigEndian.Uint16(b[atCount:])),
		fabric:  fabric,
		node:    netip.AddrFrom16([16]byte(b[atNode:])).Unmap(),
		session: binary.BigEndian.Uint64(b[atSession:]),
		counter: binary.BigEndian.Uint64(b[atCounter:]),
		heard:   binary.BigEndian.Uint64(b[atHeard:]),
		epoch:   binary.BigEndian.Uint64(b[atEpoch:]),
	}, nil
}

// appendLeader appends the body of an answer: the leader's address, the zero AddrPort if
// there is none.
func appendLeader(b []byte, leader netip.AddrPort) []byte {
	var addr [16]byte
	if leader.IsValid() {
		addr = leader.Addr().As16()
	}
	return binary.BigEndian.AppendUint16(append(b, addr[:]...), leader.Port())
}

// parseLeader reads the body of an answer.
//
// Errors: RejectTruncated, RejectTrailing.
func parseLeader(b []byte) (leader netip.AddrPort, err error) {
	switch {
	case len(b) < answerSize:
		return leader, RejectTruncated
	case len(b) > answerSize:
		return leader, RejectTrailing
	}
	addr, port := netip.AddrFrom16([16]byte(b)).Unmap(), binary.BigEndian.Uint16(b[16:])
	switch {
	case port == 0 && addr == netip.IPv6Unspecified():
		return leader, nil
	case port == 0:
		return leader, RejectTrailing
	}
	return netip.AddrPortFrom(addr, port), nil
}

// rejectOf translates what a Keyring says.
func rejectOf(err error) error {
	switch err {
	case topoupdate.RejectKey:
		return RejectKey
	case topoupdate.RejectMAC:
		return RejectMAC
	}
	return RejectTruncated
}
