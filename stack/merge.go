package stack

import (
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/internal/dataplane"
	"weft/resequencer/gro"
)

// merger makes super-segments of TCP segments that are handed to it in order,
// so that netstack has less to do: what a packet costs there hardly depends on
// its size.
type merger struct {
	train gro.Train
	head  *gstack.PacketBuffer // the first of the train, with the payload of all; nil if there is none
}

// headers returns the packet's headers, and payload where that is contiguous.
func headers(p *gstack.PacketBuffer) []byte {
	d := p.Data()
	b, _ := d.PullUp(min(d.Size(), dataplane.MaxHeaders))
	return b
}

// add reports whether p continues the train, and has then taken it over.
func (m *merger) add(p received) bool {
	if m.head == nil || !m.train.Add(headers(p.PacketBuffer), p.mss) {
		return false
	}
	d := p.Data()
	d.TrimFront(m.train.HeaderLen())
	m.head.Data().Merge(d)
	p.DecRef()
	return true
}

// start makes p the first of a new train, or none if it is zero, and returns
// the one before, ready to be handed up; nil if there is none.
func (m *merger) start(p received) (before *gstack.PacketBuffer) {
	if before = m.head; before != nil {
		m.train.Finish(headers(before))
	}
	if m.head = p.PacketBuffer; m.head != nil {
		m.train.Start(headers(m.head), p.mss)
	}
	return before
}
