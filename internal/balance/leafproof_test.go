package balance

import (
	"testing"

	"weft/conga"
)

// knows has a flow send a packet of 1,000 bytes from sequence number 5,000 on, and returns a
// segment that acknowledges it.
func (l *Leaf) knows(r *LeafRack, p Packet, now uint64) LeafSegment {
	l.Choose(r, p, 0, now)
	l.Departs(r.Number, p, LeafSegment{Seq: 5000, Payload: 1000, Flags: leafACK})
	return LeafSegment{Ack: 6000, Flags: leafACK}
}

// Only a mark in a connection of the rack's own counts, and not for ever.
func TestLeaf_marksMustBeProven(t *testing.T) {
	l, r := newLeaf(t, "conga"), leafRack(t, 7, 2, 0, 1)
	now := uint64(1e12)
	lie := conga.Mark{Feedback: true, Tag: 1, Metric: 7}
	back := Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 4<<16 | 3}
	ack := LeafSegment{Ack: 6000, Flags: leafACK}
	if l.Hear(7, back, ack, lie, now) {
		t.Error("a mark without a connection counts")
	}
	l.knows(r, Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3<<16 | 4}, now)
	if l.Hear(6, back, ack, lie, now) || l.Hear(7, Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 4<<16 | 5}, ack, lie, now) {
		t.Error("a mark of another rack's, or of other ports, counts")
	}
	for _, s := range []LeafSegment{{Ack: 4999, Flags: leafACK}, {Ack: 6001, Flags: leafACK}, {Ack: 5500}} {
		if l.Hear(7, back, s, lie, now) {
			t.Errorf("a mark with %+v counts", s)
		}
	}
	if !l.Hear(7, back, ack, lie, now) {
		t.Error("a mark in a connection does not count")
	}
	if l.Hear(7, back, LeafSegment{Ack: 5999, Flags: leafACK}, lie, now) {
		t.Error("what was acknowledged still is a proof")
	}
	if l.Hear(7, back, ack, lie, now+uint64(LeafKeep)+1) {
		t.Error("a mark in a connection of long ago counts")
	}
	if l.Heard != 1 || l.Unproven != 8 {
		t.Errorf("%d heard, %d unproven", l.Heard, l.Unproven)
	}
}

// Of guesses spread over all numbers hardly one hits a window of 64 KB, though each that does
// is an acknowledgement. A window of any length is one of 4 MB at most.
func TestLeaf_guessesProveNothing(t *testing.T) {
	r := leafRack(t, 7, 2, 0, 1)
	forth, back := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3<<16 | 4}, Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 4<<16 | 3}
	for _, c := range []struct{ segments, most uint32 }{{1, 1}, {2000, 5}} {
		l, now := newLeaf(t, "conga"), uint64(1e12)
		l.knows(r, forth, now)
		for n := range c.segments {
			l.Departs(7, forth, LeafSegment{Seq: 6000 + n*64<<10, Payload: 64 << 10, Flags: leafACK})
		}
		for n := range uint32(4096) {
			l.Hear(7, back, LeafSegment{Ack: n<<20 + 9, Flags: leafACK}, conga.Mark{Feedback: true, Tag: 1, Metric: 7}, now)
		}
		if l.Heard > uint64(c.most) {
			t.Errorf("%d of 4096 guesses count with %d segments in flight", l.Heard, c.segments)
		}
	}
}

// A connection that begins anew is proven by its own numbers.
func TestLeaf_provesNewConnections(t *testing.T) {
	l, r, now := newLeaf(t, "conga"), leafRack(t, 7, 2, 0, 1), uint64(1e12)
	forth, back := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3<<16 | 4}, Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 4<<16 | 3}
	l.knows(r, forth, now)
	for _, seq := range []uint32{1<<32 - 1, 2e9, 77} {
		l.Departs(7, forth, LeafSegment{Seq: seq, Flags: leafSYN})
		l.Departs(7, forth, LeafSegment{Seq: seq + 1, Payload: 10, Flags: leafACK | leafFIN})
		for _, ack := range []uint32{seq + 1, seq + 11, seq + 12} {
			if !l.Acknowledged(7, back, LeafSegment{Ack: ack, Flags: leafACK}, now) {
				t.Errorf("from %d on: %d is no proof", seq, ack)
			}
		}
		if l.Acknowledged(7, back, LeafSegment{Ack: seq + 13, Flags: leafACK}, now) {
			t.Error("an acknowledgement of what was not sent is a proof")
		}
	}
}
