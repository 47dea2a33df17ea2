package stack

import (
	"gvisor.dev/gvisor/pkg/buffer"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/flowcell"
	"weft/internal/dataplane"
)

// toNetstack is the sink of a Host: netstack. It is used by ingress, under its lock.
type toNetstack struct {
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
		// Headers apart: netstack holds on to them while it reads them again, and
		// copies the whole piece of memory that they are in.
		payload = buffer.MakeWithData(a.Bytes[:dataplane.MaxHeaders])
		payload.Append(view)
		u.views[a.Slot], u.bufs[a.Slot] = nil, nil
	} else {
		payload = buffer.MakeWithData(a.Bytes)
	}
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: payload})
	p.RXChecksumValidated = pkt.IsTCP()
	if pkt.Flags&flowcell.FlagSYN != 0 && !u.timestamps && a.Bytes[0]>>4 == 4 {
		dataplane.StripTimestamps(headers(p))
	}
	return received{p, a.MSS}
}

// deliver hands up what is ready, segments that continue each other as one.
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

func (u *toNetstack) handUp(p *gstack.PacketBuffer) {
	if p == nil {
		return
	}
	u.ep.deliver(p, p.RXChecksumValidated)
	u.virtual.settle()
}
