package dataplane

import (
	"time"

	"weft/flowcell"
)

// choose returns the path of a unit of data that begins; nil if none is live. last is
// the path of the flow's unit before, or any other.
func (e *Egress) choose(p *pair, flow *flowcell.FiveTuple, last *pathOut, now time.Duration) *pathOut {
	if e.aware == nil {
		return p.next(&p.of(flow, e.seed).data)
	}
	was := -1
	if p.group.has(last) {
		was = last.index
	}
	g := p.group
	order := g.components[0].order
	if len(g.components) > 1 {
		order = g.components[g.component(flow.Hash(e.seed))].order
	}
	path := e.aware.choose(p, order, was, now)
	if path < 0 || path >= len(g.out) {
		return nil
	}
	return g.out[path]
}

// byTurn returns the next path of acknowledgements; nil if none is live.
func (e *Egress) byTurn(p *pair, flow *flowcell.FiveTuple) *pathOut {
	return p.next(&p.of(flow, e.seed).ack)
}

// byFlow returns the one path that a flow keeps to; nil if none is live. Fragments have
// no ports, so datagrams to one host keep to one path, whatever their ports.
func (e *Egress) byFlow(p *pair, pkt *flowcell.Packet) *pathOut {
	flow := pkt.Flow
	if !pkt.IsTCP() {
		flow.SrcPort, flow.DstPort = 0, 0
	}
	return p.group.byHash(flow.Hash(e.seed))
}

// account tells of data that a path carries in so many segments.
func (e *Egress) account(p *pair, pkt *flowcell.Packet, via *pathOut, segments int, now time.Duration) {
	if e.aware != nil {
		payload := int(pkt.Payload)
		e.aware.sent(p, via.index, payload+segments*(pkt.Length-payload+via.header.Overhead()), now)
	}
}
