package dataplane

import (
	"time"

	"weft/drb"
	"weft/flowcell"
)

// choose returns the path of a unit of data that begins with pkt; nil if none is live.
// last is the path of the flow's unit before, or any other. What is never acknowledged
// tells nothing: where the policy heeds that, it goes by the Rule.
//
// leave says that pkt is sent again because of a timeout, so last may be dead: a path of another
// tag is chosen; where all live paths have one tag, another path; last if that is the only one.
// It matters to CONGA. Nothing arrives by a dead path, so nobody reports that it is congested,
// and the flow would keep to it, timeout after timeout. Where a tag is a first hop (conga.Tag),
// that may be what is dead.
func (e *Egress) choose(l *lane, p *pair, pkt *flowcell.Packet, last *pathOut, leave bool, now time.Duration) *pathOut {
	if l.aware == nil || l.heeding != nil && pkt.Payload == 0 {
		return p.next(&p.of(&pkt.Flow, e.seed).data)
	}
	was := -1
	if p.group.has(last) {
		was = last.index
	}
	g := p.group
	order := g.Components[0].Order
	if len(g.Components) > 1 {
		order = g.Components[g.Component(pkt.Flow.Hash(e.seed))].Order
	}
	if leave && was >= 0 {
		tag := g.Tags[was]
		if e.others = without(e.others[:0], order, func(n int) bool { return g.Tags[n] == tag }); len(e.others) == 0 {
			e.others = without(e.others, order, func(n int) bool { return n == was })
		}
		if len(e.others) > 0 {
			order, was = e.others, -1
		}
	}
	path := l.aware.choose(p, pkt, order, was, now)
	if path < 0 || path >= len(g.out) {
		return nil
	}
	return g.out[path]
}

// without appends to others the paths that are not left out.
func without(others, paths []int, out func(path int) bool) []int {
	for _, n := range paths {
		if !out(n) {
			others = append(others, n)
		}
	}
	return others
}

// byTurn returns the next path of acknowledgements; nil if none is live. In a tunnel it is the
// next one for each batch.
func (e *Egress) byTurn(p *pair, flow *flowcell.FiveTuple) *pathOut {
	if e.paths.tunnel != nil {
		if e.turn.pair != p {
			e.turn = turn{p, p.next(&p.of(flow, e.seed).ack)}
		}
		return e.turn.via
	}
	return p.next(&p.of(flow, e.seed).ack)
}

// byFlow returns the one path that a flow keeps to; nil if none is live. Fragments have
// no ports, so datagrams to one host keep to one path, whatever their ports.
func (e *Egress) byFlow(p *pair, pkt *flowcell.Packet) *pathOut {
	flow := pkt.Flow
	if !pkt.IsTCP() {
		flow.SrcPort, flow.DstPort = 0, 0
	}
	if n, ok := p.group.ByHash(flow.Hash(e.seed)); ok {
		return p.group.out[n]
	}
	return nil
}

// selectors are those of one component of a pair's paths.
type selectors struct{ data, ack drb.Selector }

// next is a selector's next path, nil if none is live.
func (p *pair) next(s *drb.Selector) *pathOut {
	n, ok := s.Next(0)
	if !ok {
		return nil
	}
	return p.group.out[n]
}

// of returns the selectors of the component that a flow keeps to.
func (p *pair) of(flow *flowcell.FiveTuple, seed uint64) *selectors {
	if p.further == nil {
		return &p.selectors
	}
	return p.component(flow, seed)
}

func (p *pair) component(flow *flowcell.FiveTuple, seed uint64) *selectors {
	if n := p.group.Component(flow.Hash(seed)); n > 0 {
		return &p.further[n-1]
	}
	return &p.selectors
}

// counted returns the number of the next segment where units have no numbers. By it
// the receiver can tell what is late from what was sent again.
func (p *pair) counted() flowcell.Number {
	p.count = p.count.Count()
	return p.count
}

// countedAll returns the number of the first of several segments into which a device will cut
// what it gets, behind one that counted has returned: the device counts on from it.
func (p *pair) countedAll(segments int) (first flowcell.Number) {
	const last = 63 // index
	if int(p.count.Index())+segments-1 > last {
		p.count = p.count.First() + last
		p.count = p.count.Count()
	}
	first = p.count
	p.count += flowcell.Number(segments - 1)
	return first
}
