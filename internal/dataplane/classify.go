package dataplane

import (
	"encoding/binary"
	"net/netip"

	"weft/flowcell"
	"weft/gso"
	"weft/internal/checksum"
)

// classify reads a packet's headers, and finds its lane, the state towards its destination and
// in how many pieces the packet leaves. It is false if the packet is dropped, and
// counted.
func (e *Egress) classify(o *Outgoing) bool {
	err := o.pkt.ParseHeaders(o.Parts[0], o.size)
	if err == nil && len(e.narrows.all) > 0 {
		e.fit(o)
	}
	if err != nil || o.MSS > 0 && o.pkt.Fragment {
		e.stats.Malformed++
		return false
	}
	e.enter(o)
	o.bare = (o.pkt.Flow.Proto != flowcell.ProtoTCP || o.pkt.Extensions) && e.bare(o)
	if o.pair.group == nil && (!o.pair.direct || e.paths.tunnel != nil) { // no peer of the tunnel has the address
		e.stats.NoPath++
		return false
	}
	if !e.fits(o) {
		return false
	}
	o.pieces, o.segments, o.whole, o.each = 1, 1, false, false
	if o.MSS != 0 && !e.segment(o) {
		return false
	}
	e.flights.sent(&o.pkt)
	return true
}

// segment finds out in how many pieces a super-segment leaves: in one if the outlet takes
// it whole. It is false if the super-segment cannot be cut; then it has been counted.
func (e *Egress) segment(o *Outgoing) bool {
	if e.outlet.whole(o) {
		o.whole = true
		o.segments = (int(o.pkt.Payload) + o.MSS - 1) / o.MSS
		return true
	}
	checksum := e.outlet.checksum()
	if err := e.segmenter.Start(o.Parts, o.MSS, checksum); err != nil {
		e.stats.Malformed++
		return false
	}
	o.Partial = checksum == gso.Partial
	o.CsumStart, o.CsumAt = uint16(e.segmenter.IPHeaderLen()), uint16(e.segmenter.ChecksumAt())
	o.pieces = e.segmenter.Left()
	o.segments = o.pieces
	o.each = o.narrow || !o.plain() && (o.lane.unit.Kind == flowcell.UnitPacket || !o.pkt.IsTCP())
	return true
}

// fits reports whether a packet, or each segment of it, is short enough for the paths
// to its rack. If not, it is counted, and its sender is told.
func (e *Egress) fits(o *Outgoing) bool {
	limit := e.longest
	if r := o.pair.rack; r != nil && r.mtu != 0 && r.mtu < limit && !(o.bare && o.pair.six) && (o.pkt.IsTCP() || !mayBeCut(o.Parts[0])) { // routers cut the others
		limit = r.mtu
	}
	size := o.size
	if o.MSS > 0 {
		size = o.pkt.Length - max(int(o.pkt.Payload)-o.MSS, 0)
	}
	if size <= limit {
		return true
	}
	router := e.paths.address
	if limit < e.longest {
		router = e.paths.of(o.pair).topo.Node(o.pair.rack.id).Addr
	}
	e.tooLong(o.Parts[0], limit, router)
	return false
}

// tooLong counts a packet that is longer than a limit, and tells its sender as a router
// would (RFC 1191, RFC 8201). head is the packet's beginning, with all headers.
func (e *Egress) tooLong(head []byte, limit int, router netip.Addr) {
	e.stats.TooLong++
	switch {
	case e.refuse == nil:
	case head[0]>>4 == 6:
		if !isICMP6Error(head) {
			e.refuse(packetTooBig(router, head, limit))
		}
	case head[9] == flowcell.ProtoTCP || !mayBeCut(head):
		e.refuse(fragmentationNeeded(router, head, limit))
	}
}

// mayBeCut reports whether routers may cut an IPv4 packet.
func mayBeCut(head []byte) bool {
	const dontFragment = 0x40
	return head[0]>>4 == 4 && head[6]&dontFragment == 0
}

// fragmentationNeeded is the ICMP error of a router about an IPv4 packet, of which it
// quotes the headers and a little more.
func fragmentationNeeded(router netip.Addr, packet []byte, mtu int) []byte {
	const headers, protocolICMP, unreachable, tooBig = 28, 1, 3, 4
	quote := packet[:min(len(packet), MaxHeaders)]
	b := make([]byte, headers, headers+len(quote))
	b[0], b[8], b[9] = 0x45, 64, protocolICMP
	binary.BigEndian.PutUint16(b[2:], uint16(headers+len(quote)))
	copy(b[12:], packet[16:20]) // the destination, where nobody on the way has an IPv4 address
	if router.Is4() {
		copy(b[12:], router.AsSlice())
	}
	copy(b[16:], packet[12:16])
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(checksum.Sum(b[:20], 0)))
	b[20], b[21] = unreachable, tooBig
	binary.BigEndian.PutUint16(b[26:], uint16(mtu))
	b = append(b, quote...)
	binary.BigEndian.PutUint16(b[22:], ^checksum.Fold(checksum.Sum(b[20:], 0)))
	return b
}
