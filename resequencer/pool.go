package resequencer

import "math/bits"

// pool keeps unused items, so that nothing is allocated once the most has been
// held. The bounds of Config bound it: at most TotalPackets+1 packets and as many
// runs, and no more holdings and peers.
type pool[P any] struct {
	packets  *packet[P]
	runs     *run[P]
	holdings []*holding[P]
	peers    []*peer[P]
	rng      uint64 // of the skip lists; not 0
}

// slab is how many packets or runs are allocated at once.
const slab = 32

// packet returns one, whose fields have any values.
func (p *pool[P]) packet() *packet[P] {
	if p.packets == nil {
		p.morePackets()
	}
	k := p.packets
	p.packets = k.next
	return k
}

func (p *pool[P]) morePackets() {
	s := make([]packet[P], slab)
	for i := range s {
		p.putPacket(&s[i])
	}
}

// putPacket takes k back and drops its reference to the caller's packet.
func (p *pool[P]) putPacket(k *packet[P]) {
	var none P
	k.p = none
	k.next = p.packets
	p.packets = k
}

// putPackets takes back a list, whose references have been dropped.
func (p *pool[P]) putPackets(head, tail *packet[P]) {
	tail.next = p.packets
	p.packets = head
}

// run returns one that is not linked anywhere, of a random height.
func (p *pool[P]) run() *run[P] {
	if p.runs == nil {
		s := make([]run[P], slab)
		for i := range s {
			s[i].due.init(&s[i])
			p.putRun(&s[i])
		}
	}
	r := p.runs
	p.runs, r.next[0] = r.next[0], nil
	p.rng ^= p.rng << 13 // Marsaglia's xorshift
	p.rng ^= p.rng >> 7
	p.rng ^= p.rng << 17
	r.height = uint8(min(1+bits.TrailingZeros64(p.rng)/2, levels))
	return r
}

func (p *pool[P]) putRun(r *run[P]) {
	r.head, r.tail, r.of = nil, nil, nil
	r.next = links[P]{p.runs}
	p.runs = r
}

func (p *pool[P]) holding() *holding[P] {
	if n := len(p.holdings); n > 0 {
		h := p.holdings[n-1]
		p.holdings = p.holdings[:n-1]
		return h
	}
	h := new(holding[P])
	h.byAge.init(h)
	h.byPeer.init(h)
	return h
}

func (p *pool[P]) peer() *peer[P] {
	if n := len(p.peers); n > 0 {
		q := p.peers[n-1]
		p.peers = p.peers[:n-1]
		return q
	}
	q := new(peer[P])
	q.holding.init(nil)
	return q
}
