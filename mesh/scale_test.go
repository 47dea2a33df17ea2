package mesh

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"weft/encap"
)

// A thousand hosts' worth of peers, and ten thousand: what one host does when it joins, when one of
// the others changes, and what it keeps.
func BenchmarkPeers(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		v, encoded := many(b, n)
		self := Self{Name: "self", Keys: []OwnKey{{PrivateKey: keyOf(0, 9)}}, Cipher: encap.UDPAESGCM}
		b.Run(fmt.Sprint("decode/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, e := range encoded {
					if _, err := Decode(e); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(fmt.Sprint("join/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := self
				if peers, _ := s.Peers(v); len(peers) != n {
					b.Fatal(len(peers))
				}
			}
		})
		b.Run(fmt.Sprint("change/", n), func(b *testing.B) {
			b.ReportAllocs()
			s := self
			s.Peers(v)
			for i := 0; b.Loop(); i++ {
				m := v.members["h7"].Member
				m.Endpoints = []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(1+i%1000))}
				m.Revision++
				v.Put(m)
				if peers, _ := s.Peers(v); len(peers) != n {
					b.Fatal(len(peers))
				}
			}
		})
		b.Run(fmt.Sprint("memory/", n), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				v, _ := many(b, n)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/member")
				runtime.KeepAlive(v)
			}
		})
	}
}

func many(t testing.TB, n int) (v *View, encoded [][]byte) {
	v = &View{}
	for i := range n {
		m := Member{Name: fmt.Sprint("h", i), Endpoints: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 5740)},
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)}, Keys: []PublicKey{keyOf(0, i+1).Public()}}
		if err := m.Sign(identityOf(i)); err != nil {
			t.Fatal(err)
		}
		e, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = Decode(e); err != nil {
			t.Fatal(err)
		}
		m.Revision, m.Since = int64(i+1), int64(i+1)
		v.Put(m)
		encoded = append(encoded, e)
	}
	return v, encoded
}

// A thousand members are peers of each other, whoever looks.
func TestPeers_aThousand(t *testing.T) {
	v, _ := many(t, 1000)
	self := Self{Name: "h500", Keys: []OwnKey{{PrivateKey: keyOf(0, 501)}}, Cipher: encap.UDPAESGCM}
	peers, problems := self.Peers(v)
	if len(peers) != 999 || len(problems) > 0 {
		t.Fatalf("%d peers, %v", len(peers), problems)
	}
	for i, p := range peers[:10] {
		other := Self{Name: p.Name, Keys: []OwnKey{{PrivateKey: keyOf(0, i+1)}}, Cipher: encap.UDPAESGCM}
		theirs, _ := other.Peers(v)
		found := false
		for _, q := range theirs {
			found = found || q.Name == "h500" && *q.Key == *p.Key
		}
		if !found {
			t.Errorf("%s and h500 do not agree", p.Name)
		}
	}
}
