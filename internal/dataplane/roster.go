package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
)

// roster is who is in a tunnel. It does not change: other peers or keys make a new one.
type roster struct {
	all      []*peer
	prefixes map[netip.Prefix]*peer
	lengths  [2][]int // of the prefixes of IPv4 and IPv6, longest first
	pairs    pairs
	names    map[string]*peer // those that have one
}

// peer is a Peer with its keys at work. A peer stays the same one when it gets other keys,
// prefixes or another endpoint.
type peer struct {
	Peer // as it was given last; behind tunnel.change

	// Behind the lock of egress.
	to     netip.AddrPort
	sealer *encap.Sealer // nil without a key
	key    encap.UDPKey  // the sealer's

	// Behind the lock of ingress.
	from     netip.Addr
	opener   *encap.Opener // nil without a key
	received uint64        // datagrams

	numbers []uint32 // see type pairs; behind tunnel.change
	same    bool     // of a fresh peer: the former one has its keys
}

// freshPeers makes peers at work. checkPeers has found them good. Those that have the keys of former
// ones, which former finds by name, get none of their own: making them takes long.
func freshPeers(peers []Peer, self string, now time.Time, former func(name string) *peer) (all []*peer, err error) {
	for i, c := range peers {
		if c.Key != nil { // whose it was may change it
			key := *c.Key
			c.Key, c.Accept = &key, slices.Clone(c.Accept)
		}
		p := &peer{Peer: c, to: unmapped(c.Endpoint)}
		p.from = p.to.Addr()
		if was := former(c.Name); was != nil && was.hasKeys(&c) {
			p.same, p.numbers = true, was.numbers
		} else if err := p.authenticate(self, now); err != nil {
			return nil, fmt.Errorf("Peers[%d]: %w", i, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// hasKeys reports whether a peer has the keys of another one.
func (p *peer) hasKeys(c *Peer) bool {
	return p.Key != nil && c.Key != nil && *p.Key == *c.Key && slices.Equal(p.Accept, c.Accept)
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// newRoster makes a roster of peers. The i-th has the prefixes and numbers of the i-th
// fresh one.
func newRoster(peers, fresh []*peer) *roster {
	r := &roster{all: peers, prefixes: make(map[netip.Prefix]*peer), pairs: make(pairs), names: make(map[string]*peer)}
	for i, p := range peers {
		if name := fresh[i].Name; name != "" {
			r.names[name] = p
		}
		for _, prefix := range fresh[i].Prefixes {
			r.prefixes[prefix.Masked()] = p
			if l := &r.lengths[family(prefix.Addr())]; !slices.Contains(*l, prefix.Bits()) {
				*l = append(*l, prefix.Bits())
			}
		}
		for _, n := range fresh[i].numbers {
			r.pairs[n] = append(r.pairs[n], p)
		}
	}
	for _, l := range r.lengths {
		slices.SortFunc(l, func(a, b int) int { return b - a })
	}
	return r
}

// family is 0 for IPv4, 1 for IPv6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// behind returns the peer that has an inner address, nil if none. It looks once for each
// length that prefixes have.
func (r *roster) behind(a netip.Addr) *peer {
	for _, bits := range r.lengths[family(a)] {
		if prefix, err := a.Prefix(bits); err == nil {
			if p := r.prefixes[prefix]; p != nil {
				return p
			}
		}
	}
	return nil
}
