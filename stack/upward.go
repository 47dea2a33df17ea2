package stack

import (
	"gvisor.dev/gvisor/pkg/buffer"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/flowcell"
)

// upward is the sink of a Host: netstack. It is used by ingress, under its lock.
type upward struct {
	ep         *endpoint
	virtual    *virtual
	timestamps bool // Config.Timestamps
	merge      merger
	views      []*buffer.View // by slot, where buffers are large
	bufs       [][]byte       // by slot
}

// received is a packet for netstack.
type received struct {
	*gstack.PacketBuffer
	mss int // of a super-segment; 0 if it is none
}

func (u *upward) Buffer(slot, size int) []byte {
	for len(u.bufs) <= slot {
		u.bufs, u.views = append(u.bufs, nil), append(u.views, nil)
	}
	switch {
	case u.bufs[slot] != nil:
	case size == superBuffer:
		u.views[slot] = buffer.NewViewSize(size)
		u.bufs[slot] = u.views[slot].AsSlice()
	default:
		u.bufs[slot] = make([]byte, size)
	}
	return u.bufs[slot]
}

func (u *upward) Packet(pkt *flowcell.Packet, a *arrived) received {
	var payload buffer.Buffer
	if a.alone && len(a.b) > small && u.views[a.slot] != nil {
		view := u.views[a.slot]
		offset := cap(u.bufs[a.slot]) - cap(a.b) // a.b ends where it ends
		view.CapLength(offset + len(a.b))
		view.TrimFront(offset + maxHeaders)
		// Headers apart: netstack holds on to them while it reads them again, and
		// copies the whole piece of memory that they are in.
		payload = buffer.MakeWithData(a.b[:maxHeaders])
		payload.Append(view)
		u.views[a.slot], u.bufs[a.slot] = nil, nil
	} else {
		payload = buffer.MakeWithData(a.b)
	}
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: payload})
	p.RXChecksumValidated = pkt.IsTCP()
	if pkt.Flags&flowcell.FlagSYN != 0 && !u.timestamps && a.b[0]>>4 == 4 {
		stripTimestamps(headers(p))
	}
	return received{p, a.mss}
}

// deliver hands up what is ready, segments that continue each other as one.
func (u *upward) Deliver(ready []received) (merged int) {
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

func (u *upward) handUp(p *gstack.PacketBuffer) {
	if p == nil {
		return
	}
	u.ep.deliver(p, p.RXChecksumValidated)
	u.virtual.settle()
}
