package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/gso"
	"weft/link"
)

// whole sends a super-segment as it is: one decision, one write. The payload is
// not copied.
func (e *Egress) whole(o *Outgoing, pair *pair, pkt *flowcell.Packet, now time.Duration) {
	n := pkt.Length - int(pkt.Payload)
	if n > MaxHeaders || n > len(o.Parts[0]) {
		e.stats.Malformed++
		return
	}
	segments := o.segments(int(pkt.Payload))
	c, ok := e.course(pair, pkt, int(pkt.Payload), segments, now)
	if !ok {
		return
	}
	if e.evidence != nil {
		e.observe(pair, pkt, c, 0, int(pkt.Payload), o.MSS)
	}
	e.flush() // what came before stays before
	o.vnet(pkt).Put((*[link.VnetHeaderLen]byte)(e.head[:]))
	head := e.head[:link.VnetHeaderLen+copy(e.head[link.VnetHeaderLen:], o.Parts[0][:n])]
	if c.via != nil {
		e.stats.Encapsulated++
		if c.numbered {
			c.number.Stamp(head[link.VnetHeaderLen:])
		}
	}
	e.parts = append(e.parts[:0], head)
	if rest := o.Parts[0][n:]; len(rest) > 0 {
		e.parts = append(e.parts, rest)
	}
	e.parts = append(e.parts, o.Parts[1:]...)
	if err := e.super.WriteParts(e.parts); err != nil {
		e.stats.DeviceDrops++
	} else {
		e.stats.Packets++
		e.stats.Supers++
	}
	clear(e.parts)
}

// each reports whether every segment of a super-segment takes a path of its own.
func (e *Egress) each(pair *pair, pkt *flowcell.Packet) bool {
	return !pair.plain() && (e.paths.policy.Unit.Kind == flowcell.UnitPacket || !pkt.IsTCP())
}

// segment cuts a super-segment for whom does not take it whole, or because the
// policy has each packet take another path.
func (e *Egress) segment(o *Outgoing, pair *pair, pkt *flowcell.Packet, now time.Duration) {
	checksum := gso.Complete
	if e.super != nil {
		checksum = gso.Partial
	}
	if err := e.segmenter.Start(o.Parts, o.MSS, checksum); err != nil {
		e.stats.Malformed++
		return
	}
	each := o.narrow || e.each(pair, pkt)
	left := e.segmenter.Left()
	segment := Outgoing{Partial: e.super != nil, CsumStart: uint16(e.segmenter.IPHeaderLen()), CsumAt: uint16(e.segmenter.ChecksumAt())}
	var c decision
	for i := 0; i < left; i++ {
		var ok bool
		switch {
		case each:
			part := pkt.Part(i*o.MSS, o.MSS)
			c, ok = e.course(pair, &part, int(part.Payload), 1, now)
		case i == 0:
			c, ok = e.course(pair, pkt, int(pkt.Payload), left, now)
		case e.paths.policy.Unit.Numbers():
			c.number++
		case c.numbered:
			c.number = pair.counted()
		}
		if !ok && (each || i == 0) {
			return
		}
		switch {
		case e.evidence == nil:
		case each:
			e.observe(pair, pkt, c, i*o.MSS, o.MSS, o.MSS)
		case i == 0:
			e.observe(pair, pkt, c, 0, int(pkt.Payload), o.MSS)
		}
		buf := e.bufs[len(e.views)]
		n := e.segmenter.Next(buf[Headroom:])
		if n == 0 {
			e.stats.TooLong++
			return
		}
		if out := e.encapsulate(buf[link.SuperHeadroom:Headroom+n], c, now); out != nil {
			e.put(buf, Headroom+n-len(out), Headroom+n, &segment)
		}
	}
}

// Where the checksums are in the transport headers.
const (
	tcpChecksumAt = 16
	udpChecksumAt = 6
)
