package dataplane

import "weft/encap"

// turn is the path of the acknowledgements to one host in a batch. In a tunnel they keep to
// it, so that they can leave in one call.
type turn struct {
	pair *pair
	via  *pathOut
}

// ackTrain gathers datagrams with acknowledgements, which are as long as each other. A
// receiver of a bulk transfer sends one for each super-segment: each in a call of its own
// costs more than all that is done to it.
type ackTrain struct {
	to    *peer
	via   *pathOut
	tos   byte
	size  int
	count int
	bytes []byte
	parts [1][]byte
}

const (
	maxACKs = 64 // in a train
	maxACK  = 60 + 60 + encap.UDPHiddenOverhead
)

// gather keeps a datagram of a packet for flush, if the packet is an acknowledgement. It goes
// behind those that are there, or takes their place when they have been sent.
func (t *tunnelOutlet) gather(o *Outgoing) bool {
	d := &t.cuts[0]
	if len(t.cuts) > 1 || !o.pkt.IsPureACK() || d.size > maxACK {
		return false
	}
	a, p, tos := &t.acks, o.pair.peer, encap.UDPTOS(o.Parts[0])
	if a.to != p || a.via != d.via || a.tos != tos || a.size != d.size || a.count == maxACKs {
		t.sendACKs()
		a.to, a.via, a.tos, a.size = p, d.via, tos, d.size
	}
	for _, part := range t.parts[d.from:d.to] {
		a.bytes = append(a.bytes, part...)
	}
	a.count++
	t.e.stats.Encapsulated++
	t.count(o, d.via, 1, uint64(d.size))
	return true
}

// sendACKs sends what was gathered.
func (t *tunnelOutlet) sendACKs() {
	a, stats := &t.acks, &t.e.stats
	if a.count == 0 {
		return
	}
	a.parts[0] = a.bytes
	if t.Underlay.Send(a.via.index, a.to.to, a.tos, a.parts[:], a.size) != nil {
		stats.DeviceDrops += uint64(a.count)
	} else {
		stats.Packets += uint64(a.count)
	}
	*a = ackTrain{bytes: a.bytes[:0]}
}
