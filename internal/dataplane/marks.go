package dataplane

import (
	"encoding/binary"
	"time"

	"weft/conga"
	"weft/flowcell"
	"weft/internal/checksum"
)

// arrivedMark is what a packet from an address says of congestion. Its sender has
// shown that it sees what is sent to it (flights).
type arrivedMark struct {
	from flowcell.Address
	id   uint16
}

// unmark takes CONGA's mark off a packet that check has accepted, if it has one. TCP then
// gets the packet as the sender's TCP sent it, and the resequencer sees an ID that says
// nothing.
//
// Only a proven packet's mark counts: the other end of its connection has acknowledged
// data that was sent to it. Anybody could send other marks, in the name of any host.
func (in *Ingress[P]) unmark(pkt *flowcell.Packet, b []byte, proven bool) {
	const df = 0x40
	if !pkt.IsTCP() || b[0]>>4 != 4 || b[1]>>2 != conga.MarkDSCP || b[6]&df == 0 {
		return
	}
	in.stats.Marked++
	switch {
	case in.marks == nil:
	case !proven:
		in.stats.UnprovenMarks++
	default:
		in.marked = append(in.marked, arrivedMark{pkt.Flow.Src, pkt.ID})
	}
	relabel(b, 0, 0)
	pkt.ID = conga.ParseMark(pkt.ID).Order()
}

// relabel gives an IPv4 header another DSCP and ID, and mends its checksum (RFC 1624
// §3). ECN stays.
func relabel(b []byte, dscp uint8, id uint16) {
	was, wasID := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[4:])
	b[1] = dscp<<2 | b[1]&3
	binary.BigEndian.PutUint16(b[4:], id)
	sum := uint64(^binary.BigEndian.Uint16(b[10:])) + uint64(^was) + uint64(binary.BigEndian.Uint16(b)) + uint64(^wasID) + uint64(id)
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(sum))
}

// receiveMarks takes in what packets say of congestion. It ignores marks from
// addresses to which nothing is sent, so nobody fills a table with made-up addresses,
// and tags that no path to the sender's rack has.
func (e *Egress) receiveMarks(marks []arrivedMark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	for _, l := range e.lanes {
		if l.informed == nil {
			continue
		}
		for _, m := range marks {
			p, mark := l.paths.pairs[m.from], conga.ParseMark(m.id)
			if p != nil && p.rack != nil && p.rack.tags>>mark.Tag&1 != 0 {
				l.informed.receive(p, mark, now)
			}
		}
	}
}

// stamp writes a mark into a packet that has room for one, if there is one.
func (i *informed) stamp(inner []byte, to *pair, d decision, now time.Duration) {
	room := inner[1]>>2 == 0
	switch {
	case room && d.marked:
		d.number = i.mark(to, d.tag, now)
	case room:
		d.number, d.numbered = i.report(to, now)
	}
	if d.numbered {
		d.number.Stamp(inner)
	}
	if room && d.numbered {
		relabel(inner, conga.MarkDSCP, uint16(d.number))
	}
}
