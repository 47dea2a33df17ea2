package resequencer

import (
	"time"

	"weft/flowcell"
)

// levels of the skip list: a level has a quarter of the runs of the one below.
// Four serve the 4,096 runs that a flow of 8,192 packets can at most consist of.
const levels = 4

// run is a stretch of held packets without a gap. A hole lies before it, or,
// where data in order is held to be merged, nothing.
type run[P any] struct {
	start, end uint32
	head, tail *packet[P] // as they are delivered: repetitions come last
	next       links[P]
	of         *holding[P]
	height     uint8
	merging    bool            // nothing is missing before it
	id         flowcell.Number // of head

	due   ring[run[P]]  // in the queue of those that wait as long
	at    time.Duration // when the hole is given up
	since time.Duration // the hole is known
	grown time.Duration // when a segment of the run's first flowcell was last added
}

type links[P any] [levels]*run[P]

// holding is the held packets of a flow: runs in the order of their sequence numbers, as
// a skip list. With as few runs as there are paths it is a plain list. With thousands, as
// an attacker would send, a search still takes only tens of steps.
type holding[P any] struct {
	key            flowcell.FiveTuple
	kept           *flow[P] // nil: it is that of key
	head           links[P]
	last           *run[P] // the run that grew last: likely to grow again
	top            uint32  // the highest end of a run
	packets, bytes int

	peer   *peer[P]
	byAge  ring[holding[P]] // of all, those that began to hold first before others
	byPeer ring[holding[P]] // the same of its peer's
}

// first returns the run with the lowest sequence numbers, nil if none is held.
func (h *holding[P]) first() *run[P] { return h.head[0] }

// likely guesses which run a segment at seq continues: the one that grew last,
// the one behind it, or the first. Flowcells on their way together arrive in
// turns. It returns nil if it is none of these.
func (h *holding[P]) likely(seq uint32) *run[P] {
	if r := h.last; r != nil {
		if r.end == seq {
			return r
		}
		if r = r.next[0]; r != nil && r.end == seq {
			return r
		}
	}
	if r := h.first(); r != nil && r.end == seq {
		return r
	}
	return nil
}

// seek finds the last run that begins at or below seq, nil if there is none,
// and on each level the links behind which a run that begins at seq belongs.
func (h *holding[P]) seek(seq uint32, to *[levels]*links[P]) (before *run[P]) {
	at := &h.head
	for l := levels - 1; l >= 0; l-- {
		for n := at[l]; n != nil && ahead(n.start, seq) <= 0; n = at[l] {
			before, at = n, &n.next
		}
		to[l] = at
	}
	return before
}

// insert links r where seek has found its place.
func (h *holding[P]) insert(r *run[P], to *[levels]*links[P]) {
	for l := range int(r.height) {
		r.next[l] = to[l][l]
		to[l][l] = r
	}
}

// removeFirst unlinks the first run.
func (h *holding[P]) removeFirst() {
	r := h.head[0]
	for l := range int(r.height) {
		h.head[l] = r.next[l]
	}
	if h.last == r {
		h.last = nil
	}
}

// removeNext unlinks the run behind r.
func (h *holding[P]) removeNext(r *run[P]) {
	var to [levels]*links[P]
	h.seek(r.start, &to)
	x := r.next[0]
	for l := range int(x.height) {
		to[l][l] = x.next[l]
	}
}

// extend adds k, which begins within r or at its end, now.
func (r *run[P]) extend(k *packet[P], now time.Duration) {
	r.tail.next = k
	r.tail = k
	if ahead(k.end, r.end) > 0 {
		r.end = k.end
	}
	if cellsAhead(k.id, r.id) == 0 {
		r.grown = now
	}
}

// prepend adds k, which begins before r and reaches it.
func (r *run[P]) prepend(k *packet[P]) {
	k.next = r.head
	r.head = k
	r.start, r.id = k.seq, k.id
	if ahead(k.end, r.end) > 0 {
		r.end = k.end
	}
}

// join adds the packets of x, the next run, which r now reaches.
func (r *run[P]) join(x *run[P]) {
	r.tail.next = x.head
	r.tail = x.tail
	if ahead(x.end, r.end) > 0 {
		r.end = x.end
	}
}
