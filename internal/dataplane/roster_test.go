package dataplane

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
)

// Of any peers, an address is behind that whose prefix is the longest that has it, and a
// number leads to the peers with such a key at that address.
func TestRoster_isByPrefixAndNumber(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var given []Peer
		taken := map[netip.Prefix]bool{}
		for i := range r.IntN(20) {
			p := Peer{Name: fmt.Sprint("p", i), Endpoint: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(r.IntN(4))}), 1)}
			for range 1 + r.IntN(3) {
				prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(3)), byte(r.IntN(3)), byte(r.IntN(4))}), 8+r.IntN(25)).Masked()
				if !taken[prefix] {
					taken[prefix] = true
					p.Prefixes = append(p.Prefixes, prefix)
				}
			}
			if len(p.Prefixes) == 0 {
				continue
			}
			if r.IntN(2) == 0 {
				p.Key = &encap.UDPKey{ID: uint8(i), Secret: [32]byte{1, byte(i)}, Cipher: encap.UDPCipher(r.IntN(3))}
			}
			given = append(given, p)
		}
		if err := checkPeers(given); err != nil {
			t.Fatal(err)
		}
		fresh, err := freshPeers(given, "self", time.Unix(1e9, 0), func(string) *peer { return nil })
		if err != nil {
			t.Fatal(err)
		}
		got := newRoster(fresh, fresh)
		for range 100 {
			addr := netip.AddrFrom4([4]byte{10, byte(r.IntN(3)), byte(r.IntN(3)), byte(r.IntN(4))})
			best, bits := "", -1
			for _, p := range given {
				for _, prefix := range p.Prefixes {
					if prefix.Contains(addr) && prefix.Bits() > bits {
						best, bits = p.Name, prefix.Bits()
					}
				}
			}
			name := ""
			if p := got.behind(addr); p != nil {
				name = p.Name
			}
			if name != best {
				t.Fatalf("seed %d: %v is behind %q, want %q", seed, addr, name, best)
			}
		}
		numbers := 0
		for _, p := range given {
			if p.Key == nil || !p.Key.Cipher.Hides() {
				continue
			}
			numbers++
			n, err := p.Key.Pair(p.Name, "self")
			if q := got.pairs.find(nil, n, p.Endpoint.Addr()); err != nil || len(q) != 1 || q[0].Name != p.Name {
				t.Fatalf("seed %d: %s's number leads to %v, %v", seed, p.Name, q, err)
			}
			if got.pairs.find(nil, n, netip.MustParseAddr("192.0.2.1")) != nil {
				t.Fatal("found at another address")
			}
		}
		if len(got.pairs) != numbers {
			t.Fatalf("seed %d: %d numbers, want %d", seed, len(got.pairs), numbers)
		}
		if !slices.EqualFunc(got.given(), given, func(a, b Peer) bool { return a.Name == b.Name }) {
			t.Fatal("peers are not those given")
		}
	}
}

// Two peers at one address whose keys have one number are both tried.
func TestPairs_sameNumber(t *testing.T) {
	var given []Peer
	for i := range 6 {
		given = append(given, Peer{Name: fmt.Sprint("p", i), Endpoint: netip.MustParseAddrPort("192.0.2.1:1"),
			Key:      &encap.UDPKey{Secret: [32]byte{1, byte(i)}, Cipher: encap.UDPAESGCM},
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 32)}})
	}
	fresh, err := freshPeers(given, "self", time.Unix(1e9, 0), func(string) *peer { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range fresh {
		p.numbers = []uint32{7}
	}
	source := &tunnelSource{tunnel: &tunnel{from: newRoster(fresh, fresh)}}
	for i, p := range fresh {
		s, err := encap.NewSealer(*p.Key, p.Name, "self", time.Unix(1e9, 0), [3]byte{})
		if err != nil {
			t.Fatal(err)
		}
		b := append(make([]byte, s.Overhead()), dataPacket(1, 10)...)
		copy(b[s.Overhead()+12:], given[i].Prefixes[0].Addr().AsSlice())
		if err := s.Seal(b, encap.UDPHeader{}); err != nil {
			t.Fatal(err)
		}
		q, _, inner, err := source.unwrapHidden(b, 7, netip.MustParseAddr("192.0.2.1"))
		if ok := err == nil && q == p && len(inner) > 0; ok != (i < mostTried) {
			t.Errorf("the datagram of peer %d: %v", i, err)
		}
	}
}

// A packet to the zero address has no peer, before any other packet as well.
func TestTunnel_zeroAddress(t *testing.T) {
	e, err := NewEgress(Config{Address: netip.MustParseAddr("10.1.0.1"), Policy: "presto", Tunnel: &Tunnel{Underlay: &collector{},
		Peers: []Peer{{Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 48)
	b[0], b[5], b[6], b[7], b[45] = 0x60, 8, 17, 64, 8 // UDP, to ::
	Send(e, [][]byte{b}, func(b []byte, o *Outgoing) { o.Begin(len(b)); o.Parts = append(o.Parts, b) })
	if s := e.stats; s.NoPath != 1 || s.Packets != 0 {
		t.Errorf("%+v", s)
	}
}
