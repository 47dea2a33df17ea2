package resequencer

import (
	"time"

	"weft/flowcell"
)

// peer is an address from which flows come, and what is held of all of them.
type peer[P any] struct {
	packets, bytes int
	holding        ring[holding[P]]
}

// peerRank has peers of which nothing is held forgotten first.
func peerRank[P any](p **peer[P], _ time.Duration) uint8 {
	if (*p).packets > 0 {
		return 1
	}
	return 0
}

// begin makes f a flow that holds.
func (b *Buffer[P]) begin(f *flow[P], key *flowcell.FiveTuple) *holding[P] {
	h := b.pool.holding()
	h.top = f.next
	if f.kept {
		h.kept, h.peer = f, b.peerOfKept(b.keeping)
	} else {
		h.kept, h.key, h.peer = nil, *key, b.peer(key.Src)
	}
	h.byAge.insertAfter(b.holding.prev)
	h.byPeer.insertAfter(h.peer.holding.prev)
	f.held = h
	return h
}

// peer returns that of an address.
func (b *Buffer[P]) peer(src flowcell.Address) *peer[P] {
	at, added := b.peers.Use(&flowcell.FiveTuple{Src: src}, b.now)
	if added {
		*at = b.pool.peer()
	}
	return *at
}

// flowOf is the flow of which h is held.
func (b *Buffer[P]) flowOf(h *holding[P]) *flow[P] {
	if h.kept != nil {
		return h.kept
	}
	return b.flows.Get(&h.key, b.now)
}

// end makes f, of which nothing is held any more, one that does not hold.
func (b *Buffer[P]) end(f *flow[P]) {
	h := f.held
	h.byAge.remove()
	h.byPeer.remove()
	h.peer, h.last, h.kept = nil, nil, nil
	b.pool.holdings = append(b.pool.holdings, h)
	f.held = nil
}

// enforce delivers packets early while a bound is exceeded after f was given a
// packet. It takes f's own packets first, then those of the flow of the same peer
// that holds longest, then those of the flow that holds longest of all.
func (b *Buffer[P]) enforce(f *flow[P]) {
	c, s := &b.config, &b.stats
	h, p := f.held, f.held.peer
	if h.packets > c.FlowPackets || h.bytes > c.FlowBytes {
		b.releaseAll(f, &s.Bound)
	}
	for p.packets > c.PeerPackets || p.bytes > c.PeerBytes {
		b.releaseEarly(p.holding.next.of)
	}
	for s.HeldPackets > c.TotalPackets || s.HeldBytes > c.TotalBytes {
		b.releaseEarly(b.holding.next.of)
	}
}

// fits reports whether one more packet keeps within all bounds that h counts against.
func (b *Buffer[P]) fits(h *holding[P], size int) bool {
	c, s, p := &b.config, &b.stats, h.peer
	return h.packets < c.FlowPackets && h.bytes+size <= c.FlowBytes &&
		p.packets < c.PeerPackets && p.bytes+size <= c.PeerBytes &&
		s.HeldPackets < c.TotalPackets && s.HeldBytes+size <= c.TotalBytes
}

func (b *Buffer[P]) releaseEarly(h *holding[P]) {
	b.releaseAll(b.flowOf(h), &b.stats.Bound)
}

// evict is told by the table of a flow that it is to forget.
func (b *Buffer[P]) evict(_ *flowcell.FiveTuple, f *flow[P]) { b.releaseAll(f, &b.stats.Bound) }

// evictPeer is told by the table of a peer that it is to forget.
func (b *Buffer[P]) evictPeer(_ *flowcell.FiveTuple, p **peer[P]) {
	for h := (*p).holding.next.of; h != nil; h = (*p).holding.next.of {
		b.releaseEarly(h)
	}
	b.pool.peers = append(b.pool.peers, *p)
}
