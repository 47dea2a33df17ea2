package dataplane

import (
	"time"

	"weft/flowcell"
)

// decision is the way that a packet takes, and what it says of it.
type decision struct {
	via      *pathOut // nil: as it is
	to       *rack    // by via; nil in a tunnel
	pair     *pair
	number   flowcell.Number
	numbered bool   // number is to be written into the packet
	marked   bool   // or CONGA's mark, where the packet has room for one
	reports  bool   // or a report of CONGA's, if there is one to give
	tag      uint8  // of via, for the mark
	sequence uint32 // of the packet in its flow, if it is not TCP and the receiver is to put it in order
}

// decision decides on a packet, or of a packet on so much payload in so many
// segments; false if it is dropped, and counted.
func (e *Egress) course(pair *pair, pkt *flowcell.Packet, payload, segments int, now time.Duration) (c decision, ok bool) {
	if pkt.IsTCP() {
		e.flights.sent(pkt)
	}
	if pair.plain() {
		if pair.direct {
			e.stats.Direct++
		} else {
			e.stats.Plain++
		}
		return c, true
	}
	unit := e.paths.policy.Unit
	if pkt.IsTCP() && unit.Cuts() {
		c = e.cut(pair, pkt, segments, now)
	} else {
		c.via = e.choose(pair, pkt, now)
		if pkt.Payload > 0 && e.paths.policy.Sprays() {
			c.number, c.numbered = pair.counted(), true
		}
		if e.tunnel != nil && e.paths.spray && !pkt.IsTCP() {
			c.sequence = e.sequence(pkt, now)
		}
	}
	if c.via == nil {
		e.stats.NoPath++
		return c, false
	}
	c.to, c.pair = pair.rack, pair
	if payload > 0 || e.paths.spray && !pkt.IsTCP() {
		e.account(pair, pkt, c.via, payload, segments, now)
	}
	return c, true
}

// sequence counts the packets of a flow that has no numbers of its own; 0 is
// none.
func (e *Egress) sequence(pkt *flowcell.Packet, now time.Duration) uint32 {
	f, _ := e.flows.Use(&pkt.Flow, now)
	f.sequence = max(f.sequence+1, 1)
	return f.sequence
}

// choose picks a path for every packet, or by the flow's hash; nil if none is
// live.
func (e *Egress) choose(p *pair, pkt *flowcell.Packet, now time.Duration) *pathOut {
	t := e.paths
	if !t.policy.Sprays() || !pkt.IsTCP() && !t.spray {
		flow := pkt.Flow
		if !pkt.IsTCP() { // fragments have no ports, and must not take another path
			flow.SrcPort, flow.DstPort = 0, 0
		}
		return p.group.byHash(flow.Hash(e.seed))
	}
	if pkt.IsPureACK() {
		return p.next(&p.of(&pkt.Flow, e.seed).ack)
	}
	return e.begin(p, &pkt.Flow, nil, now)
}

// cut finds the way of a TCP packet's unit, and its number where units have one.
// What carries no payload goes beside the units: acknowledgements by paths of
// their own, the end of a connection with its last unit, if that was just now.
func (e *Egress) cut(p *pair, pkt *flowcell.Packet, segments int, now time.Duration) (c decision) {
	if pkt.Payload == 0 {
		if !pkt.IsPureACK() {
			if f := e.flows.Get(&pkt.Flow, now); f != nil && p.group.has(f.via) {
				if number, ok := f.cutter.Edge(now); ok {
					c.via, c.number, c.numbered = f.via, number, e.uplink && e.paths.policy.Unit.Numbers()
					return c
				}
			}
		}
		c.via = p.next(&p.of(&pkt.Flow, e.seed).ack)
		c.reports = e.informed != nil && pkt.IsPureACK()
		if e.uplink { // which goes by the number
			p.acks++
			c.number, c.numbered = flowcell.MakeNumber(p.acks, 0), true
		}
		return c
	}
	f, added := e.flows.Use(&pkt.Flow, now)
	if added {
		f.cutter = flowcell.NewCutter(pkt.Flow.Hash(e.seed))
	}
	if f.group != p.group.id {
		f.group = p.group.id
		if !p.group.has(f.via) { // the path is gone
			f.cutter.End()
		}
	}
	unit := e.paths.policy.Unit
	number, begins := f.cutter.Next(unit, pkt.Seq, int(pkt.Payload), segments, now)
	if begins {
		f.via = e.begin(p, &pkt.Flow, f.via, now)
	}
	c.via, c.number, c.numbered = f.via, number, unit.Numbers()
	if !c.numbered {
		c.number, c.numbered = p.counted(), true
	}
	if e.informed != nil && c.via != nil {
		c.marked, c.tag = true, p.group.tag(c.via.index)
	}
	return c
}
