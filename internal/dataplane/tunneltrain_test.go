package dataplane

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/gso"
	"weft/link"
)

// Whatever parts lie behind each other, a train has the same bytes, and none beyond what a part
// may grow into.
func TestJoin_keepsTheBytes(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		memory := make([]byte, 400)
		for i := range memory {
			memory[i] = byte(r.Uint32())
		}
		var train [][]byte
		var want []byte
		at, least := 0, 0
		for range 30 {
			if r.IntN(3) == 0 {
				at = r.IntN(len(memory))
			}
			n := r.IntN(min(20, len(memory)-at) + 1)
			part := memory[at : at+n]
			if r.IntN(4) == 0 {
				part = slices.Clip(part)
			}
			at += n
			want = append(want, part...)
			if train = join(train, part); n > 0 {
				least++
			}
		}
		if got := slices.Concat(train...); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %x, want %x", seed, got, want)
		}
		if seed == 0 && len(train) >= least {
			t.Error("nothing was joined")
		}
	}
}

// pieces is an Underlay that counts the parts that each call has.
type pieces struct {
	collector
	parts []int
}

func (u *pieces) Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error {
	u.parts = append(u.parts, len(parts))
	return u.collector.Send(path, to, tos, parts, size)
}

// The datagrams of a super-segment that are sealed leave in one part, and those that are not in a
// header and a payload each. All of them are what a kernel would cut.
func TestTunnel_sealedTrainIsOnePart(t *testing.T) {
	const mss, segments = 100, 7
	super := dataPacket(1, mss*segments)
	for _, cipher := range []*encap.UDPCipher{nil, ptr(encap.UDPGMAC), ptr(encap.UDPAESGCM), ptr(encap.UDPChaCha20Poly1305)} {
		u := &pieces{}
		peer := Peer{Name: "b", Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		want := 2 * segments
		if cipher != nil {
			peer.Key = key(1)
			peer.Key.Cipher, want = *cipher, 1
		}
		e, err := NewEgress(Config{Address: netip.MustParseAddr("10.200.0.1"), Policy: "presto", Seed: 1,
			Tunnel: &Tunnel{Underlay: u, Name: "a", Peers: []Peer{peer}}})
		if err != nil {
			t.Fatal(err)
		}
		buf := append(make([]byte, link.SuperHeadroom), super...)
		link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: 20, CsumOffset: 16, GSOType: link.VnetGSOTCPv4, GSOSize: mss, HdrLen: 40}.
			Put((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
		for range 3 {
			e.forward([][]byte{buf}, []int{len(super)})
		}
		if !slices.Equal(u.parts, []int{want, want, want}) {
			t.Errorf("%v: calls with %v parts, want %d each", cipher, u.parts, want)
		}
		var s gso.Segmenter
		segment := make([]byte, 2000)
		for i, b := range u.sent {
			if i%segments == 0 {
				if err := s.Start([][]byte{super}, mss, gso.Partial); err != nil {
					t.Fatal(err)
				}
			}
			n := s.Next(segment)
			if inner := opened(t, peer.Key, u.sent[:i+1], b); !bytes.Equal(inner, segment[:n]) {
				t.Fatalf("%v: datagram %d has %x, want %x", cipher, i, inner, segment[:n])
			}
		}
		if len(u.sent) != 3*segments {
			t.Errorf("%v: %d datagrams", cipher, len(u.sent))
		}
	}
}

// Who has an inner address is never what another roster said.
func TestKnown_followsTheRoster(t *testing.T) {
	var k known
	var rosters []*roster
	for i := range 4 {
		p := Peer{Name: fmt.Sprint(i), Endpoint: netip.MustParseAddrPort("192.0.2.1:1"),
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i % 2), 0}), 24)}}
		fresh, err := freshPeers([]Peer{p}, "self", time.Unix(1e9, 0), func(string) *peer { return nil })
		if err != nil {
			t.Fatal(err)
		}
		rosters = append(rosters, newRoster(fresh, fresh))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		a := netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(3)), 1})
		from := rosters[r.IntN(len(rosters))]
		if got, want := k.behind(from, a), from.behind(a); got != want {
			t.Fatalf("%v: %v, want %v", a, got, want)
		}
	}
}
