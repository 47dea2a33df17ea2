package resequencer

import (
	"time"

	"weft/flowcell"
)

// flow is what is known of one direction of a connection.
//
// Of what is held, everything begins above next.
type flow[P any] struct {
	key flowcell.FiveTuple
	use ring[flow[P]] // in the table's list, the latest used first

	next  uint32 // all below is delivered or declared lost
	isn   uint32 // of the SYN that began the flow
	began bool   // isn is known

	arrived, delivered highest

	bySeq   ring[packet[P]] // held, in order of sequence numbers, then of arrival
	packets int
	bytes   int
}

// packet is one that is held.
type packet[P any] struct {
	p        P
	flow     *flow[P]
	seq, end uint32
	size     int
	since    time.Duration

	bySeq, byAge ring[packet[P]]
}

// start makes seq the first sequence number of f, which holds nothing.
func (f *flow[P]) start(s *Segment) {
	f.next = s.Seq
	f.isn, f.began = s.Seq, s.Flags&flowcell.FlagSYN != 0
	f.arrived, f.delivered = highest(s.Seq), highest(s.Seq)
}

// begins reports whether s is the SYN of a new connection rather than a late
// copy of the one that began f, after which waiting for data that came long ago
// would be a mistake.
func (f *flow[P]) begins(s *Segment) bool {
	return s.Flags&flowcell.FlagSYN != 0 && !(f.began && f.isn == s.Seq)
}

// place returns the held packet, or the head, behind which one that begins at
// seq belongs. It looks from the end: most that are held continue the last one.
func (f *flow[P]) place(seq uint32) *ring[packet[P]] {
	at := f.bySeq.prev
	for at.of != nil && ahead(at.of.seq, seq) > 0 {
		at = at.prev
	}
	return at
}

// insert links k behind at, which is its place.
func (f *flow[P]) insert(k *packet[P], at *ring[packet[P]]) {
	k.bySeq.insertAfter(at)
	f.packets++
	f.bytes += k.size
}

// first returns the held packet with the lowest sequence number, nil if
// nothing is held.
func (f *flow[P]) first() *packet[P] { return f.bySeq.next.of }

// pass moves next up to end, if that is ahead.
func (f *flow[P]) pass(end uint32) {
	if ahead(end, f.next) > 0 {
		f.next = end
	}
}
