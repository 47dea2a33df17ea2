package topoupdate

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/topology"
)

// Messages are UDP datagrams between neighbours, never forwarded: to Group, from
// and to Port, with a TTL of 255 (RFC 5082).
const (
	Port = 9338
	// MaxMessage is the longest message, in bytes of UDP payload: below any MTU.
	MaxMessage = 1200
)

// Group is for experiments on the link (RFC 4727); no router forwards it.
var Group = netip.AddrFrom4([4]byte{224, 0, 0, 254})

const (
	magic       = 0x5755 // "WU"
	wireVersion = 1
	typeHello   = 1
	typeUpdate  = 2
)

// Layout of the header that all messages share.
const (
	atVersion     = 2
	atType        = 3
	atKey         = 4 // 0: not signed
	atCount       = 6 // entries of an update; 0 in a hello
	atFingerprint = 8
	atSender      = 16
	atSenderPort  = 20
	atSession     = 24
	atCounter     = 32
	atHeard       = 40
	headerSize    = 48
	helloSize     = headerSize + 8
)

// header is what all messages begin with.
type header struct {
	kind       byte
	count      int
	sender     topology.NodeID
	senderPort int
	session    uint64 // the sender's on this link: grows with each attempt at an adjacency
	counter    uint64 // of the sender's messages in this session
	heard      uint64 // the receiver's session that the sender hears; 0: none
}

func appendHeader(b []byte, h *header, fingerprint uint64) []byte {
	b = binary.BigEndian.AppendUint16(b, magic)
	b = append(b, wireVersion, h.kind, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(h.count))
	b = binary.BigEndian.AppendUint64(b, fingerprint)
	b = binary.BigEndian.AppendUint32(b, uint32(h.sender))
	b = binary.BigEndian.AppendUint16(b, uint16(h.senderPort))
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint64(b, h.session)
	b = binary.BigEndian.AppendUint64(b, h.counter)
	return binary.BigEndian.AppendUint64(b, h.heard)
}

// parseHeader reads the header of a message of this fabric. It allocates nothing and
// reads nothing behind the header.
//
// Errors: RejectTruncated, RejectOversized, RejectVersion, RejectType, RejectFabric.
func parseHeader(b []byte, fingerprint uint64) (h header, err error) {
	switch {
	case len(b) < headerSize:
		return h, RejectTruncated
	case len(b) > MaxMessage:
		return h, RejectOversized
	case binary.BigEndian.Uint16(b) != magic || b[atVersion] != wireVersion:
		return h, RejectVersion
	case b[atType] != typeHello && b[atType] != typeUpdate:
		return h, RejectType
	case binary.BigEndian.Uint64(b[atFingerprint:]) != fingerprint:
		return h, RejectFabric
	}
	return header{
		kind:       b[atType],
		count:      int(binary.BigEndian.Uint16(b[atCount:])),
		sender:     topology.NodeID(binary.BigEndian.Uint32(b[atSender:])),
		senderPort: int(binary.BigEndian.Uint16(b[atSenderPort:])),
		session:    binary.BigEndian.Uint64(b[atSession:]),
		counter:    binary.BigEndian.Uint64(b[atCounter:]),
		heard:      binary.BigEndian.Uint64(b[atHeard:]),
	}, nil
}

// hello is what only hellos say.
type hello struct {
	interval   time.Duration // at most between two hellos
	multiplier int           // of them may be missed
	down       bool          // the sender holds this link to be dead
	leaving    bool          // the sender ends in an orderly way; its links go on
}

const (
	helloDown    = 1 << 0
	helloLeaving = 1 << 1
)

func appendHello(b []byte, h hello) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(h.interval/time.Microsecond))
	var flags byte
	if h.down {
		flags |= helloDown
	}
	if h.leaving {
		flags |= helloLeaving
	}
	return append(b, byte(h.multiplier), flags, 0, 0)
}

// parseHello reads what follows the header of a hello, without the MAC.
//
// Errors: RejectTruncated; RejectTrailing if it is longer or has unknown flags.
func parseHello(b []byte, count int) (h hello, err error) {
	switch {
	case len(b) < helloSize-headerSize:
		return h, RejectTruncated
	case len(b) > helloSize-headerSize || count != 0 || b[4] == 0 || b[5]&^(helloDown|helloLeaving) != 0 || b[6] != 0 || b[7] != 0:
		return h, RejectTrailing
	}
	return hello{
		interval:   time.Duration(binary.BigEndian.Uint32(b)) * time.Microsecond,
		multiplier: int(b[4]),
		down:       b[5]&helloDown != 0,
		leaving:    b[5]&helloLeaving != 0,
	}, nil
}
