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

// cut finds out to which unit piece i of a packet belongs, and so which way it goes:
// its decision. It is false if the piece is dropped, and counted.
func (e *Egress) cut(o *Outgoing, i int, now time.Duration) bool {
	switch d := &o.decision; {
	case o.each:
		o.part = o.pkt.Part(i*o.MSS, o.MSS)
		return e.way(o, &o.part, 1, now)
	case i == 0:
		return e.way(o, &o.pkt, o.segments, now)
	case o.lane.unit.Numbers():
		d.number++
	case d.numbered && !o.pair.six:
		d.number = o.pair.counted()
	}
	return true
}

// way finds the way of a packet of o, of so many segments.
func (e *Egress) way(o *Outgoing, pkt *flowcell.Packet, segments int, now time.Duration) bool {
	d, pair := &o.decision, o.pair
	*d = decision{}
	switch {
	case pair.direct:
		e.stats.Direct++
	case o.plain():
		e.stats.Plain++
	default:
		if l := o.lane; pkt.IsTCP() && l.unit.Cuts() {
			e.unit(l, d, pair, pkt, segments, now)
			if o.whole && d.numbered && !l.unit.Numbers() && !pair.six {
				d.number = pair.countedAll(segments)
			}
		} else {
			e.packet(l, d, pair, pkt, now)
		}
		if d.via == nil {
			e.stats.NoPath++
			return false
		}
	}
	e.note(o, pkt, segments, now)
	return true
}

// packet finds the way of a packet that is no part of a unit.
func (e *Egress) packet(l *lane, d *decision, p *pair, pkt *flowcell.Packet, now time.Duration) {
	switch {
	case !l.sprays || !pkt.IsTCP() && !l.paths.spray:
		d.via = e.byFlow(p, pkt)
	case pkt.IsPureACK():
		d.via = e.byTurn(p, &pkt.Flow)
	default:
		d.via = e.choose(l, p, pkt, nil, false, now)
	}
	if pkt.Payload > 0 && l.sprays {
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

// sending is what is remembered of a flow that is cut into units.
type sending struct {
	cutter flowcell.Cutter
	via    *pathOut // of the unit under way; nil while no path is live
	group  uint32   // the latest one that via was found in
	// sequence is, of what is not TCP, how many packets were sent, where the receiver goes by
	// it. Of TCP over IPv6 it is the number of the flowlet under way.
	sequence uint32
}

// counted returns the number of a packet of a flow whose units have no numbers. In IPv6 all
// packets of a unit have one: see flowcell.Number.Stamp.
func (f *sending) counted(p *pair, begins bool) flowcell.Number {
	if !p.six {
		return p.counted()
	}
	if begins {
		f.sequence = uint32(p.counted())
	}
	return flowcell.Number(f.sequence)
}

// unit finds the way of a TCP packet's unit, and its number where units have one.
// Packets without payload are no part of a unit: acknowledgements take paths of their
// own, the end of a connection takes its last unit's, if that was just now.
func (e *Egress) unit(l *lane, d *decision, p *pair, pkt *flowcell.Packet, segments int, now time.Duration) {
	if pkt.Payload == 0 {
		e.beside(l, d, p, pkt, now)
		return
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
	unit := l.unit
	timeout := l.informed != nil && f.cutter.TimedOut(pkt.Seq, int(pkt.Payload), now)
	number, begins := f.cutter.Next(unit, pkt.Seq, int(pkt.Payload), segments, now)
	if begins {
		f.via = e.choose(l, p, pkt, f.via, timeout, now)
	}
	d.via, d.number, d.numbered = f.via, number, unit.Numbers()
	if !d.numbered {
		d.number, d.numbered = f.counted(p, begins), true
	}
	if l.informed != nil && d.via != nil && !p.six {
		d.marked, d.tag = true, p.group.Tags[d.via.index]
	}
}

// beside finds the way of a TCP packet without payload.
func (e *Egress) beside(l *lane, d *decision, p *pair, pkt *flowcell.Packet, now time.Duration) {
	if !pkt.IsPureACK() {
		if f := e.flows.Get(&pkt.Flow, now); f != nil && p.group.has(f.via) {
			if number, ok := f.cutter.Edge(now); ok {
				d.via, d.number, d.numbered = f.via, number, l.uplink && l.unit.Numbers() && !p.six
				return
			}
		}
	}
	d.via = e.byTurn(p, &pkt.Flow)
	d.reports = l.informed != nil && pkt.IsPureACK() && !p.six
	if l.uplink && l.unit.Numbers() && !p.six { // the program goes by the number
		p.acks++
		d.number, d.numbered = flowcell.MakeNumber(p.acks, 0), true
	}
}
