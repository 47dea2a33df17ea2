package dataplane

import (
	"encoding/binary"

	"weft/flowcell"
	"weft/internal/fate"
)

// arrivedAck is what a packet acknowledges. Its sender has shown that it sees what is sent
// to it (flights).
type arrivedAck struct {
	flow flowcell.FiveTuple // in the direction in which this host sends
	ack  fate.Ack
}

// newArrivedAck reads a TCP packet that check has accepted.
func newArrivedAck(pkt *flowcell.Packet, b []byte, ack uint32) arrivedAck {
	from, to := sackOf(b[transportAt(b):])
	return arrivedAck{pkt.Flow.Reverse(), fate.Ack{All: ack, From: from, To: to, Marked: pkt.Flags&flowcell.FlagECE != 0}}
}

// sackOf returns the first block of a TCP header's selective acknowledgement option (RFC
// 2018 §3); equal numbers if it has none. The header lies in tcp as a whole, with the
// length that it says.
func sackOf(tcp []byte) (from, to uint32) {
	const end, nop, sack, header, block = 0, 1, 5, 20, 8
	options := tcp[header : int(tcp[12]>>4)*4]
	for len(options) > 0 {
		kind := options[0]
		if kind == nop {
			options = options[1:]
			continue
		}
		if kind == end || len(options) < 2 {
			break
		}
		n := int(options[1])
		if n < 2 || n > len(options) {
			break
		}
		if kind == sack && n >= 2+block {
			return binary.BigEndian.Uint32(options[2:]), binary.BigEndian.Uint32(options[6:])
		}
		options = options[n:]
	}
	return 0, 0
}

// receiveAcks tells the selectors of flows what was acknowledged. It ignores flows that
// egress has forgotten.
func (e *Egress) receiveAcks(acks []arrivedAck) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	for i := range acks {
		a := &acks[i]
		for _, h := range e.heeding { // none by now
			if f := h.flows.Get(&a.flow, now); f != nil {
				f.Acked(e.evidence.segments, a.flow.Hash(e.evidence.seed), a.ack, now)
			}
		}
	}
}
