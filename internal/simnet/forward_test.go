package simnet

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"weft/topology"
)

func TestInject_deliversOrCountsTheCause(t *testing.T) {
	topo := fatTree(t, 4)
	src, near, far := host(t, topo, "h0.0.2"), host(t, topo, "h0.1.2"), host(t, topo, "h3.1.3")
	core, agg, edge := host(t, topo, "3.0"), host(t, topo, "a0.2"), host(t, topo, "e0.0")
	addr := netip.MustParseAddr
	plain := func(dst netip.Addr) []byte { return udp(src.Addr, dst, 1, 2, 100) }
	edit := func(b []byte, f func(b []byte)) []byte { f(b); return seal(b) }
	const delivered = NumCauses
	tests := []struct {
		name   string
		packet []byte
		want   Cause
	}{
		{"plain", plain(far.Addr), delivered},
		{"to the embedded stack", plain(topo.EmbeddedAddr(far.ID)), delivered},
		{"with padding", append(plain(far.Addr), make([]byte, 30)...), delivered},
		{"with options", edit(append(plain(far.Addr), 0), func(b []byte) { b[0] = 0x48 }), delivered},
		{"bounced by a core", tunnel(t, src.Addr, core.Addr, plain(far.Addr)), delivered},
		{"bounced by an aggregation switch", tunnel(t, src.Addr, agg.Addr, plain(near.Addr)), delivered},
		{"tunnel to a host", tunnel(t, src.Addr, far.Addr, plain(far.Addr)), delivered},
		{"TTL just enough for five switches", edit(plain(far.Addr), func(b []byte) { b[8] = 6 }), delivered},
		{"truncated UDP header", edit(plain(far.Addr)[:24], func(b []byte) { b[3] = 24 }), delivered},

		{"nothing", nil, Malformed},
		{"a byte", []byte{0x45}, Malformed},
		{"IPv5", edit(plain(far.Addr), func(b []byte) { b[0] = 0x55 }), Malformed},
		{"what says that it is IPv6", edit(plain(far.Addr), func(b []byte) { b[0] = 0x65 }), TTLExpired}, // its hop limit is where IPv4 has an offset
		{"IHL too small", edit(plain(far.Addr), func(b []byte) { b[0] = 0x44 }), Malformed},
		{"IHL beyond the packet", edit(plain(far.Addr)[:24], func(b []byte) { b[0], b[3] = 0x4f, 24 }), Malformed},
		{"shorter than it says", plain(far.Addr)[:99], Malformed},
		{"bad checksum", func() []byte { b := plain(far.Addr); b[10]++; return b }(), Malformed},
		{"inner truncated", edit(tunnel(t, src.Addr, core.Addr, plain(far.Addr)), func(b []byte) { b[3] -= 50 }), Malformed},
		{"inner bad checksum", func() []byte { b := tunnel(t, src.Addr, core.Addr, plain(far.Addr)); b[30]++; return b }(), Malformed},
		{"IP-in-IP-in-IP", tunnel(t, src.Addr, core.Addr, tunnel(t, src.Addr, core.Addr, plain(far.Addr))), Malformed},
		{"inner source forged", tunnel(t, src.Addr, core.Addr, udp(near.Addr, far.Addr, 1, 2, 100)), Spoofed},
		{"outer source forged", tunnel(t, near.Addr, core.Addr, plain(far.Addr)), Spoofed},

		{"TTL 5 on a way over five switches", edit(plain(far.Addr), func(b []byte) { b[8] = 5 }), TTLExpired},
		{"TTL 0", edit(plain(far.Addr), func(b []byte) { b[8] = 0 }), TTLExpired},
		{"inner TTL ends at the bounce", tunnel(t, src.Addr, core.Addr, edit(plain(far.Addr), func(b []byte) { b[8] = 1 })), TTLExpired},

		{"to nobody in the rack", plain(addr("10.0.0.99")), NoRoute},
		{"to no rack in the pod", plain(addr("10.0.7.2")), NoRoute},
		{"to no pod", plain(addr("10.9.0.2")), NoRoute},
		{"to another network", plain(addr("192.0.2.1")), NoRoute},
		{"bounced to nobody", tunnel(t, src.Addr, core.Addr, plain(addr("10.3.1.99"))), NoRoute},

		{"to the edge switch", plain(edge.Addr), NotForUs},
		{"to a core", plain(core.Addr), NotForUs},
		{"tunnel to the edge switch", tunnel(t, src.Addr, edge.Addr, plain(far.Addr)), NotForUs},
		{"bounced to the core itself", tunnel(t, src.Addr, core.Addr, plain(core.Addr)), NotForUs},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := network(t, topo, Config{})
			kept := slices.Clone(tt.packet)
			n.Inject(src.ID, tt.packet, 0)
			got := drain(n)
			want := Stats{Injected: 1}
			if tt.want == delivered {
				want.Delivered = 1
			} else {
				want.Dropped[tt.want] = 1
			}
			if s := n.Stats(); s != want || len(got) != int(want.Delivered) {
				t.Errorf("%d delivered, %+v, want %+v", len(got), s, want)
			}
			if !slices.Equal(tt.packet, kept) {
				t.Error("the caller's bytes were changed")
			}
		})
	}
}

func TestInject_cutsPaddingOff(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3")
	n := network(t, topo, Config{})
	n.Inject(src.ID, append(udp(src.Addr, dst.Addr, 1, 2, 100), 1, 2, 3), 0)
	if got := drain(n); len(got) != 1 || len(got[0].packet) != 100 {
		t.Errorf("delivered %v, want 100 bytes", got)
	}
	if up, _ := n.Link(topo.Ports(src.ID)[0].Link); up.Bytes != 100+FrameOverhead {
		t.Errorf("the uplink counts %d bytes, want %d", up.Bytes, 100+FrameOverhead)
	}
}

// TestRoutes_matchLongestPrefix compares every node's tables with a search of
// all its routes.
func TestRoutes_matchLongestPrefix(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, spec := range []string{"fat-tree:k=6", "leaf-spine:leaves=4,spines=3,hosts=2", "vl2:d0=2,d1=4,d2=4"} {
		topo := parse(t, spec)
		whole := topo
		// A link or two may be gone.
		for l := range topo.Links() {
			if topo.Node(l.A).Layer != topology.LayerHost && rng.IntN(20) == 0 {
				topo = topo.Without(l.ID)
			}
		}
		for id := range whole.Nodes() {
			s := newNode(topo, id, 0)
			routes, ports := topo.Routes(id.ID), topo.Ports(id.ID)
			addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
			for n := range topo.Nodes() {
				addrs = append(addrs, n.Addr)
				addrs = append(addrs, topo.BouncingAddrs(n.ID)...)
			}
			for range 200 {
				addrs = append(addrs, netip.AddrFrom4([4]byte{10, byte(rng.IntN(8)), byte(rng.IntN(8)), byte(rng.Uint32())}))
			}
			search := func(addr netip.Addr, virtual int) (want []int32, found bool) {
				best := -1
				for _, r := range routes {
					if r.Virtual != virtual || !r.Prefix.Contains(addr) || r.Prefix.Bits() <= best {
						continue
					}
					best, want = r.Prefix.Bits(), nil
					for _, i := range r.Weighted() {
						p := 2 * int32(ports[i].Link)
						if topo.Link(ports[i].Link).B == id.ID {
							p++
						}
						want = append(want, p)
					}
				}
				return want, best >= 0
			}
			for _, addr := range addrs {
				for virtual := range 1 + len(s.virtual) {
					want, found := search(addr, virtual)
					if !found {
						want, _ = search(addr, 0)
					}
					if got := s.routes(number(addr), virtual); !slices.Equal(got, want) {
						t.Fatalf("%s: %s: %v goes to %v, want %v", spec, id.Name, addr, got, want)
					}
				}
			}
		}
	}
}

func TestDecrementTTL_keepsTheChecksum(t *testing.T) {
	for id := range 1 << 16 {
		b := udp(netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3"), 1, 2, 40)
		binary.BigEndian.PutUint16(b[4:], uint16(id))
		b[8] = byte(2 + id%254)
		seal(b)
		if !decrementTTL(b) {
			t.Fatalf("TTL %d refused", b[8])
		}
		got := binary.BigEndian.Uint16(b[10:])
		if want := binary.BigEndian.Uint16(seal(b)[10:]); got != want {
			t.Fatalf("ID %#x: checksum %#x, want %#x", id, got, want)
		}
	}
}

func FuzzInject(f *testing.F) {
	topo := fatTree(f, 4)
	src, far, core := host(f, topo, "h0.0.2"), host(f, topo, "h3.1.3"), host(f, topo, "3.0")
	plain := udp(src.Addr, far.Addr, 1, 2, 60)
	f.Add(plain, true)
	f.Add(tunnel(f, src.Addr, core.Addr, plain), true)
	f.Add(tunnel(f, src.Addr, core.Addr, tunnel(f, src.Addr, core.Addr, plain)), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend { // so that more than the checksum test is reached
			seal(b)
			if len(b) > 40 {
				seal(b[20:])
			}
		}
		n := network(t, topo, Config{})
		n.Inject(src.ID, b, 0)
		drain(n)
		if s := n.Stats(); s.Injected != 1 || s.InFlight != 0 || !s.conserved() {
			t.Errorf("%+v", s)
		}
	})
}
