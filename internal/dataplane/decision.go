package dataplane

import (
	"time"

	"weft/flowcell"
)

// decision is the way that a packet takes, and what it says of it.
type decision struct {
	via      *pathOut // nil: as it is
	number   flowcell.Number
	numbered bool   // number is to be written into the packet
	marked   bool   // or CONGA's mark, where the packet has room for one
	reports  bool   // or a report of CONGA's, if there is one to give
	tag      uint8  // of via, for the mark
	sequence uint32 // of the packet in its flow, if it is not TCP and the receiver is to put it in order
}

// decide decides on piece i of a packet. It is false if the piece is dropped, and
// counted.
func (e *Egress) decide(o *Outgoing, i int, now time.Duration) bool {
	switch d := &o.decision; {
	case o.each:
		part := o.pkt.Part(i*o.MSS, o.MSS)
		return e.decideOn(o, &part, 1, now)
	case i == 0:
		return e.decideOn(o, &o.pkt, o.segments, now)
	case e.paths.policy.Unit.Numbers():
		d.number++
	case d.numbered:
		d.number = o.pair.counted()
	}
	return true
}

// decideOn decides on a packet of o, of so many segments.
func (e *Egress) decideOn(o *Outgoing, pkt *flowcell.Packet, segments int, now time.Duration) bool {
	d, pair := &o.decision, o.pair
	*d = decision{}
	if pkt.IsTCP() {
		e.flights.sent(pkt)
	}
	switch {
	case pair.direct:
		e.stats.Direct++
	case pair.plain():
		e.stats.Plain++
	default:
		if pkt.IsTCP() && e.paths.policy.Unit.Cuts() {
			e.cut(d, pair, pkt, segments, now)
		} else {
			e.each(d, pair, pkt, now)
		}
		if d.via == nil {
			e.stats.NoPath++
			return false
		}
		if pkt.Payload > 0 || e.paths.spray && !pkt.IsTCP() {
			e.account(pair, pkt, d.via, segments, now)
		}
	}
	if e.evidence != nil {
		e.observe(pair, pkt, d.via, o.MSS)
	}
	return true
}

// each finds the way of a packet that is no part of a unit.
func (e *Egress) each(d *decision, p *pair, pkt *flowcell.Packet, now time.Duration) {
	switch t := e.paths; {
	case !t.policy.Sprays() || !pkt.IsTCP() && !t.spray:
		d.via = e.byFlow(p, pkt)
	case pkt.IsPureACK():
		d.via = e.byTurn(p, &pkt.Flow)
	default:
		d.via = e.choose(p, &pkt.Flow, nil, now)
	}
	if pkt.Payload > 0 && e.paths.policy.Sprays() {
		d.number, d.numbered = p.counted(), true
	}
	if e.counts && !pkt.IsTCP() {
		d.sequence = e.sequence(pkt, now)
	}
}

// sequence counts the packets of a flow that has no numbers of its own; 0 is
// none.
func (e *Egress) sequence(pkt *flowcell.Packet, now time.Duration) uint32 {
	f, _ := e.flows.Use(&pkt.Flow, now)
	f.sequence = max(f.sequence+1, 1)
	return f.sequence
}
