package fate

import (
	"time"

	"weft/flowcell"
	"weft/policy"
)

// Ack is what a TCP packet acknowledges.
type Ack struct {
	All uint32 // everything before this sequence number has arrived
	// From and To are the first block of a selective acknowledgement (RFC 2018), which
	// holds the segment that has just arrived; equal if there is none.
	From, To uint32
	Marked   bool // the packet says that something met congestion (ECN-Echo, RFC 3168)
}

// Heeded is a flow whose policy goes by what became of its packets: its selector, and
// what must be known to tell it. The zero value has no selector. It is not safe for
// concurrent use.
type Heeded struct {
	selector policy.Selector
	latest   time.Duration // when data was last sent
	pause    time.Duration // before that
	una      uint32        // the first sequence number of which no acknowledgement was taken note of
	from, to uint32        // the latest selective block of which note was taken; equal: none
}

// maxBlock is how many segments of a selective block are looked at for one packet. The
// rest is for later packets, or for the acknowledgement of everything before.
const maxBlock = 64

// NewHeeded returns a flow that has not begun. Its first byte of payload is seq.
func NewHeeded(s policy.Selector, seq uint32, now time.Duration) Heeded {
	return Heeded{selector: s, una: seq, latest: now}
}

// Next returns the path of a unit that begins, one of live, or below 0 if there is none.
// live is as policy.Selector wants it.
func (h *Heeded) Next(live []int, now time.Duration) int {
	h.pause, h.latest = now-h.latest, now
	if len(live) == 0 {
		return -1
	}
	return h.selector.Next(live, now)
}

// Lost takes note that a segment which a path had carried is sent again, in the unit for
// which Next was asked last. After a pause that is a timeout's: see
// flowcell.LeastTimeout.
func (h *Heeded) Lost(path int) {
	h.selector.Lost(path, h.pause > flowcell.LeastTimeout, h.latest)
}

// Acked tells the selector of all segments that a packet acknowledges and no packet
// before it did. hash is the flow's, as New was told.
func (h *Heeded) Acked(s *Segments, hash uint64, a Ack, now time.Duration) {
	if int32(a.All-h.una) > 0 {
		h.una = h.credit(s, hash, h.una, a.All, len(s.marks), a.Marked, now)
	}
	from, to := a.From, a.To
	if int32(to-from) <= 0 || int32(from-a.All) < 0 { // none, or a duplicate (RFC 2883)
		return
	}
	// A block mostly grows at its end. What it had before is not looked at again.
	if known := h.to - h.from; known > 0 && h.from-from <= to-from {
		if to-h.from <= known {
			to = h.to
		}
		h.credit(s, hash, from, h.from, maxBlock, a.Marked, now)
		h.from, h.to = from, h.credit(s, hash, h.to, to, maxBlock, a.Marked, now)
		return
	} else if known > 0 && from-h.from < known && to-h.from <= known {
		return
	}
	h.from, h.to = from, h.credit(s, hash, from, to, maxBlock, a.Marked, now)
}

// credit tells the selector of the segments from one sequence number to another, of the
// first so many. It returns where it has got to: there, or where a segment begins of
// which only a part is acknowledged. It ends at a segment that is forgotten.
func (h *Heeded) credit(s *Segments, hash uint64, from, to uint32, most int, marked bool, now time.Duration) uint32 {
	at := from
	for ; int32(to-at) > 0 && most > 0; most-- {
		m, tag := s.slot(hash, at)
		if !m.is(tag) {
			return to
		}
		end := at + uint32(m.size)
		if int32(to-end) < 0 {
			return at
		}
		if m.tag&spent == 0 {
			m.tag |= spent
			h.selector.Acked(int(m.path), marked, now)
		}
		at = end
	}
	return at
}
