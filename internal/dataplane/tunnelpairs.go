package dataplane

import (
	"net/netip"

	"weft/encap"
)

// pairs find the peer whose datagrams hide the inner packet, by the number that these
// carry (encap.UDPPair). Several peers may have one number by chance, and a peer has several
// during a change of keys.
type pairs map[uint32][]*peer

// number returns the numbers of the datagrams from other to self.
func number(self, other string, keys []encap.UDPKey) (numbers []uint32, err error) {
	for _, k := range keys {
		if !k.Cipher.Hides() {
			continue
		}
		n, err := k.Pair(other, self)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// mostTried is how many peers with one number at one address are tried. Who may be a peer
// can make a key with another one's number, at the cost of some billions of keys.
const mostTried = 4

// find appends the peers at an outer address that have a number.
func (a pairs) find(to []*peer, n uint32, from netip.Addr) []*peer {
	for _, p := range a[n] {
		if p.from == from && len(to) < mostTried {
			to = append(to, p)
		}
	}
	return to
}
