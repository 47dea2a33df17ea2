package stack

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"weft/encap"
	"weft/link"
)

// What a Host with a thousand and ten thousand peers does when it gets them, and when one of them has
// another endpoint or another key.
func BenchmarkSetPeers(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		var peers []Peer
		for i := range n {
			peers = append(peers, Peer{Name: fmt.Sprint("p", i), Key: &encap.UDPKey{ID: 1, Secret: [32]byte{1, byte(i), byte(i >> 8)}, Cipher: encap.UDPAESGCM},
				Endpoint: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, byte(i >> 8), byte(i)}), 1), Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)}})
		}
		begin := func(b *testing.B) *Host {
			u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 2})
			if err != nil {
				b.Fatal(err)
			}
			h, err := New(Config{Address: netip.MustParseAddr("10.9.0.1"), Tunnel: &Tunnel{Underlay: u, Name: "self", Room: encap.UDPHiddenOverhead}})
			if err != nil {
				b.Fatal(err)
			}
			return h
		}
		b.Run(fmt.Sprint("join/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				h := begin(b)
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				if err := h.SetPeers(peers); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/peer")
				h.Close()
				b.StartTimer()
			}
		})
		for what, change := range map[string]func(p *Peer, i int){
			"endpoint": func(p *Peer, i int) { p.Endpoint = netip.AddrPortFrom(p.Endpoint.Addr(), uint16(1+i%1000)) },
			"key": func(p *Peer, i int) {
				p.Key = &encap.UDPKey{ID: byte(i), Secret: [32]byte{9, byte(i), byte(i >> 8)}, Cipher: encap.UDPAESGCM}
			},
		} {
			b.Run(fmt.Sprint(what, "/", n), func(b *testing.B) {
				b.ReportAllocs()
				h := begin(b)
				defer h.Close()
				for i := 0; b.Loop(); i++ {
					change(&peers[7], i)
					if err := h.SetPeers(peers); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
