package balance

import (
	"math/bits"

	"weft/conga"
)

// LeafSegment is what a leaf switch reads of a TCP header.
type LeafSegment struct {
	Seq, Ack uint32
	Payload  uint32 // bytes
	Flags    uint8  // TCP's: FIN is 1, SYN 2, RST 4, ACK 16
}

const (
	leafFIN = 1 << iota
	leafSYN
	leafRST
	_
	leafACK
)

// Departs takes note of what a flow has in flight to a rack, after Choose.
func (l *Leaf) Departs(rack uint32, p Packet, s LeafSegment) {
	place, who := l.Place(p)
	f := l.Flows[place]
	if f.Who != who || f.Rack != rack || s.Flags&leafRST != 0 {
		return
	}
	end := s.Seq + s.Payload + uint32(s.Flags&leafFIN)
	if s.Flags&leafSYN != 0 {
		s.Seq++
		end = s.Seq
	}
	switch {
	case f.Seen == 0 || s.Flags&leafSYN != 0 || int32(end-f.Low) < 0 && f.Low-end > leafWindow:
		f.Low, f.Highest, f.Seen = s.Seq, end, 1
	case int32(end-f.Highest) > 0:
		f.Highest = end
	}
	if f.Highest-f.Low > leafWindow {
		f.Low = f.Highest - leafWindow
	}
	l.Flows[place] = f
}

// Acknowledged reports a packet p that came from a rack and acknowledges what p's receiver has
// in flight to it. Each one that does moves the low end of what the next ones may say. So a
// sender that has not seen the flow has to guess a number of its window.
func (l *Leaf) Acknowledged(rack uint32, p Packet, s LeafSegment, now uint64) bool {
	place, who := l.Place(Packet{Src: p.Dst, Dst: p.Src, Protocol: p.Protocol, Ports: bits.RotateLeft32(p.Ports, 16)})
	f := l.Flows[place]
	if f.Last == 0 || f.Who != who || f.Rack != rack || f.Seen == 0 || now-f.Last > uint64(LeafKeep) ||
		s.Flags&leafACK == 0 || s.Ack-f.Low > f.Highest-f.Low {
		return false
	}
	f.Low = s.Ack
	l.Flows[place] = f
	return true
}

// Hear takes in the mark of a packet p that came from a rack. It counts only if the packet is
// Acknowledged.
func (l *Leaf) Hear(rack uint32, p Packet, s LeafSegment, m conga.Mark, now uint64) (proven bool) {
	if !l.Acknowledged(rack, p, s, now) {
		l.Unproven++
		return false
	}
	l.Heard++
	if m.Feedback {
		row := l.To[rack]
		row.Metric[m.Tag], row.At[m.Tag] = m.Metric, now
		l.To[rack] = row
		return true
	}
	row := l.From[rack]
	row.CE[m.Tag], row.At[m.Tag] = m.Metric, now
	row.News |= 1 << m.Tag
	l.From[rack] = row
	return true
}
