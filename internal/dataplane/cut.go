package dataplane

import (
	"time"

	"weft/flowcell"
)

// sending is what is remembered of a flow that is cut into units.
type sending struct {
	cutter   flowcell.Cutter
	via      *pathOut // of the unit under way; nil while no path is live
	group    uint32   // the latest one that via was found in
	sequence uint32   // of what is not TCP: packets sent, where the receiver goes by it
}

// cut finds the way of a TCP packet's unit, and its number where units have one.
// Packets without payload are no part of a unit: acknowledgements take paths of their
// own, the end of a connection takes its last unit's, if that was just now.
func (e *Egress) cut(d *decision, p *pair, pkt *flowcell.Packet, segments int, now time.Duration) {
	if pkt.Payload == 0 {
		e.beside(d, p, pkt, now)
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
	unit := e.paths.policy.Unit
	number, begins := f.cutter.Next(unit, pkt.Seq, int(pkt.Payload), segments, now)
	if begins {
		f.via = e.choose(p, &pkt.Flow, f.via, now)
	}
	d.via, d.number, d.numbered = f.via, number, unit.Numbers()
	if !d.numbered {
		d.number, d.numbered = p.counted(), true
	}
	if e.informed != nil && d.via != nil {
		d.marked, d.tag = true, p.group.tag(d.via.index)
	}
}

// beside finds the way of a TCP packet without payload.
func (e *Egress) beside(d *decision, p *pair, pkt *flowcell.Packet, now time.Duration) {
	if !pkt.IsPureACK() {
		if f := e.flows.Get(&pkt.Flow, now); f != nil && p.group.has(f.via) {
			if number, ok := f.cutter.Edge(now); ok {
				d.via, d.number, d.numbered = f.via, number, e.uplink && e.paths.policy.Unit.Numbers()
				return
			}
		}
	}
	d.via = e.byTurn(p, &pkt.Flow)
	d.reports = e.informed != nil && pkt.IsPureACK()
	if e.uplink { // the program goes by the number
		p.acks++
		d.number, d.numbered = flowcell.MakeNumber(p.acks, 0), true
	}
}
