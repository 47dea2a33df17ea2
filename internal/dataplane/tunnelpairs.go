package dataplane

import (
	"net/netip"
	"slices"

	"weft/encap"
)

// pairs find the peer whose datagrams hide the inner packet, by the number that these
// carry (encap.UDPPair). Several peers may have one number by chance, and a peer has two
// during a change of keys. The zero value is empty.
type pairs map[uint32][]*peer

// set makes a peer's numbers those of its keys, and forgets its former ones. After an
// error nothing has changed.
func (a *pairs) set(p *peer, self, other string, keys ...*encap.UDPKey) error {
	var numbers []uint32
	for _, k := range keys {
		if k == nil || !k.Cipher.Hides() {
			continue
		}
		n, err := k.Pair(other, self)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	for _, n := range p.pairs {
		(*a)[n] = slices.DeleteFunc((*a)[n], func(q *peer) bool { return q == p })
		if len((*a)[n]) == 0 {
			delete(*a, n)
		}
	}
	if *a == nil {
		*a = pairs{}
	}
	for _, n := range numbers {
		(*a)[n] = append((*a)[n], p)
	}
	p.pairs = numbers
	return nil
}

// find returns the peer at an outer address that has a number; nil if none has.
func (a pairs) find(n uint32, from netip.Addr) *peer {
	for _, p := range a[n] {
		if p.from == from {
			return p
		}
	}
	return nil
}
