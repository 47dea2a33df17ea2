package stack

import (
	"gvisor.dev/gvisor/pkg/buffer"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/resequencer/gro"

	"weft/flowcell"
	"weft/internal/dataplane"
)

// toNetstack is the sink of a Host: netstack. It is used by ingress, under its lock.
type toNetstack struct {
	ep         *endpoint
	virtual    *virtual
	timestamps bool // Config.TCP.Timestamps
	merge      merger
	views      []*buffer.View // by slot, where buffers are large
	bufs       [][]byte       // by slot
}

// received is a packet for netstack.
type received struct {
	*gstack.PacketBuffer
	mss int // of a super-segment; 0 if it is none
}

func (u *toNetstack) Buffer(slot, size int) []byte {
	for len(u.bufs) <= slot {
		u.bufs, u.views = append(u.bufs, nil), append(u.views, nil)
	}
	switch {
	case u.bufs[slot] != nil:
	case size == dataplane.SuperBuffer:
		u.views[slot] = buffer.NewViewSize(size)
		u.bufs[slot] = u.views[slot].AsSlice()
	default:
		u.bufs[slot] = make([]byte, size)
	}
	return u.bufs[slot]
}

func (u *toNetstack) Packet(pkt *flowcell.Packet, a *dataplane.Arrived) received {
	var payload buffer.Buffer
	if a.Alone && len(a.Bytes) > dataplane.CopyBelow && u.views[a.Slot] != nil {
		view := u.views[a.Slot]
		offset := cap(u.bufs[a.Slot]) - cap(a.Bytes) // a.b ends where it ends
		view.CapLength(offset + len(a.Bytes))
		view.TrimFront(offset + dataplane.MaxHeaders)
		// The headers lie apart: netstack keeps them while it reads them again, and
		// copies the whole piece of memory that they lie in.
		payload = buffer.MakeWithData(a.Bytes[:dataplane.MaxHeaders])
		payload.Append(view)
		u.views[a.Slot], u.bufs[a.Slot] = nil, nil
	} else {
		payload = buffer.MakeWithData(a.Bytes)
	}
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: payload})
	p.RXChecksumValidated = pkt.IsTCP()
	if pkt.Flags&flowcell.FlagSYN != 0 && !u.timestamps && !pkt.Extensions {
		dataplane.StripTimestamps(headers(p))
	}
	return received{p, a.MSS}
}

// Deliver hands up what is ready. Segments that continue each other become one
// packet.
func (u *toNetstack) Deliver(ready []received) (merged int) {
	for _, p := range ready {
		if u.merge.add(p) {
			merged++
			continue
		}
		u.handUp(u.merge.start(p))
	}
	u.handUp(u.merge.start(received{}))
	return merged
}

// Peek is the ingress's, for who captures.
func (u *toNetstack) Peek(p received, b []byte, n int) ([]byte, int) {
	size := p.Data().Size()
	return append(b, p.Data().AsRange().Capped(min(n, size)).ToSlice()...), size
}

func (u *toNetstack) handUp(p *gstack.PacketBuffer) {
	if p == nil {
		return
	}
	u.ep.deliver(p, p.RXChecksumValidated)
	u.virtual.settle()
}

// merger makes super-segments of TCP segments that are handed to it in order.
// Netstack then has less to do: what a packet costs there hardly depends on its size.
type merger struct {
	train gro.Train
	head  *gstack.PacketBuffer // the first of the train, with the payload of all; nil if there is none
}

// headers returns the packet's headers, and the payload that lies directly behind
// them.
func headers(p *gstack.PacketBuffer) []byte {
	d := p.Data()
	b, _ := d.PullUp(min(d.Size(), dataplane.MaxHeaders))
	return b
}

// add takes p over if it continues the train, and reports whether it does.
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

// start makes p the first of a new train, or begins none if p is zero. It returns the
// train before, ready to be handed up; nil if there is none.
func (m *merger) start(p received) (before *gstack.PacketBuffer) {
	if before = m.head; before != nil {
		m.train.Finish(headers(before))
	}
	if m.head = p.PacketBuffer; m.head != nil {
		m.train.Start(headers(m.head), p.mss)
	}
	return before
}
