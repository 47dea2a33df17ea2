package dataplane

import (
	"weft/flowcell"
	"weft/internal/checksum"
	"weft/link"
)

// MaxHeaders is the length of the longest headers, of IPv4 and TCP.
const MaxHeaders = 60 + 60

// Outgoing is a packet on its way out, wherever it comes from. Each stage of egress adds
// its results.
type Outgoing struct {
	Parts [][]byte // of the packet, read only; the first has all headers
	size  int      // bytes of all parts
	// MSS is the payload of each segment of a super-segment, in bytes; 0 for a single
	// packet.
	MSS int
	// Partial says that a checksum remains to be completed. It covers everything behind
	// the first CsumStart bytes. Its field lies CsumAt bytes further on, and holds the
	// sum of the pseudo-header.
	Partial           bool
	CsumStart, CsumAt uint16
	// Policy is that of the packet's flow, as Egress.Policy numbers it. 0 means none:
	// then the destination's policy applies, or the egress's own.
	Policy uint8

	// Of classify. narrow says that MSS is what the way to the destination carries, not
	// what the sender's TCP has decided on: the segments must leave one by one.
	pkt      flowcell.Packet
	lane     *lane
	pair     *pair
	narrow   bool
	pieces   int  // in which it leaves
	segments int  // of its payload
	whole    bool // the outlet takes a super-segment in one piece
	each     bool // every piece takes a path of its own
	bare     bool // is never encapsulated, and never cut

	decision decision        // of cut: on the piece under way
	part     flowcell.Packet // that piece, where each takes a path of its own
}

// plain reports whether a packet leaves as it is.
func (o *Outgoing) plain() bool { return o.bare || o.pair.plain() }

// below reports whether a program below the outlet encapsulates a packet, by its number.
// The programs know only IPv4: IPv6 is encapsulated here.
func (o *Outgoing) below() bool { return o.lane.uplink && !o.pair.six }

// number is what a packet says of its unit. In IPv6 that must not change within a unit
// (flowcell.Number.Stamp).
func (o *Outgoing) number() flowcell.Number {
	if o.pair.six && o.lane.unit.Numbers() {
		return o.decision.number.First()
	}
	return o.decision.number
}

// bare reports whether a packet that is not TCP, or has extension headers, is one that no
// switch takes out of an outer header: a tunnel's (encap.ErrNested). IPv6 with extension
// headers, fragments too, is not encapsulated either: switches that look for the inner ports
// would take it through their processor, and nobody here can cut it. Nor is IPv6 that has no
// room for its outer header, which is longer than that of IPv4.
func (e *Egress) bare(o *Outgoing) bool {
	tunnel := o.pkt.Flow.Proto == flowcell.ProtoIPIP || o.pkt.Flow.Proto == flowcell.ProtoIPv6 && o.Parts[0][0]>>4 == 6
	return (tunnel || o.pkt.Extensions || o.pair.six && e.paths.six != nil && o.size > e.paths.six.longest) && e.paths.tunnel == nil
}

// Begin makes o a packet of so many bytes without offloads. The caller appends its Parts.
func (o *Outgoing) Begin(size int) {
	o.Parts, o.size, o.MSS, o.Partial, o.narrow, o.Policy = o.Parts[:0], size, 0, false, false, 0
}

// fromDevice makes o a packet that a SuperDevice has read, with its header. It is false
// if the header makes no sense.
func (o *Outgoing) fromDevice(h link.VnetHeader, packet []byte) bool {
	if h.Check(len(packet)) != nil {
		return false
	}
	o.Begin(len(packet))
	o.Parts = append(o.Parts, packet)
	if h.GSO() {
		o.MSS = int(h.GSOSize)
	}
	o.Partial = h.Flags&link.VnetNeedsCsum != 0
	o.CsumStart, o.CsumAt = h.CsumStart, h.CsumOffset
	return true
}

// vnet is the header for a device that takes o as it is.
func (o *Outgoing) vnet() (h link.VnetHeader) {
	pkt := &o.pkt
	if o.Partial {
		h.Flags = link.VnetNeedsCsum
		h.CsumStart, h.CsumOffset = o.CsumStart, o.CsumAt
	}
	if o.MSS != 0 {
		h.GSOType = link.VnetGSOTCPv4
		if o.Parts[0][0]>>4 == 6 {
			h.GSOType = link.VnetGSOTCPv6
		}
		if pkt.Flags&flowcell.FlagCWR != 0 {
			h.GSOType |= link.VnetGSOECN
		}
		h.GSOSize = uint16(o.MSS)
		h.HdrLen = uint16(pkt.Length - int(pkt.Payload))
	}
	return h
}

// complete computes a checksum that was partial.
func complete(packet []byte, start, at int) {
	field := start + at
	sum := ^checksum.Fold(checksum.Sum(packet[start:], 0))
	if sum == 0 {
		sum = 0xffff // to UDP 0 means that there is none, to others both are one
	}
	packet[field], packet[field+1] = byte(sum>>8), byte(sum)
}

// Where the checksums are in the transport headers.
const (
	tcpChecksumAt = 16
	udpChecksumAt = 6
)
