package simnet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

// labelled puts an outer IPv6 header with labels in front of inner, as from
// who has the IPv4 address src.
func labelled(t testing.TB, src netip.Addr, ports []int, inner []byte) []byte {
	t.Helper()
	sids, err := encap.SIDs(ports)
	if err != nil {
		t.Fatal(err)
	}
	h, err := encap.NewSRv6Outer(topology.Addr6(src), sids)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A packet with the labels of a path takes the links of the path and no others,
// with the labels that are left and less of its hop limit on each, and comes out
// as if it had not been wrapped.
func TestInject_labelledPacketsTakeTheirPath(t *testing.T) {
	for _, spec := range append(kinds, "fat-tree:k=6") {
		topo := parse(t, spec)
		n := network(t, topo, Config{})
		before := make([]uint64, topo.NumLinks())
		now := time.Duration(0)
		for src := range topo.Hosts() {
			for dst := range topo.Hosts() {
				paths := topo.Paths(src.ID, dst.ID)
				for i := range paths.Count() {
					now += time.Second
					inner := udp(src.Addr, dst.Addr, 1, 2, 100)
					n.Inject(src.ID, labelled(t, src.Addr, paths.Labels(i), inner), now)
					got := drain(n)
					if len(got) != 1 || got[0].host != dst.ID {
						t.Fatalf("%s: %s to %s by %s: %d delivered, %+v", spec, src.Name, dst.Name, paths.Name(i), len(got), n.Stats())
					}
					inner[8]-- // only the destination's edge switch has routed it
					if !bytes.Equal(got[0].packet, seal(inner)) {
						t.Fatalf("%s: %x arrives, want %x", spec, got[0].packet, inner)
					}
					want := slices.Sorted(slices.Values(paths.Path(i).Links))
					if took := taken(n, topo, before); !slices.Equal(took, want) {
						t.Fatalf("%s: %s to %s by %s: links %v, want %v", spec, src.Name, dst.Name, paths.Name(i), took, want)
					}
				}
			}
		}
	}
}

// taken returns the links that packets have entered since before, ascending.
func taken(n *Network, topo *topology.Topology, before []uint64) (took []topology.LinkID) {
	for l := range topo.NumLinks() {
		up, down := n.Link(topology.LinkID(l))
		for ; before[l] < up.Packets+down.Packets; before[l]++ {
			took = append(took, topology.LinkID(l))
		}
	}
	return took
}

// Hop by hop: what is in flight behind each switch.
func TestPop_oneLabelPerSwitch(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	n := network(t, topo, Config{})
	n.Inject(src.ID, labelled(t, src.Addr, []int{2, 3, 3, 1}, udp(src.Addr, dst.Addr, 1, 2, 100)), 0)
	for i, want := range []string{"5f00:304:402:fe00::", "5f00:404:2fe::", "5f00:402:fe00::", "5f00:2fe::", "5f00:fe00::"} {
		e := n.events.First()
		if got := netip.AddrFrom16([16]byte(e.packet.data[24:])); got != netip.MustParseAddr(want) || int(e.packet.data[7]) != 64-i {
			t.Errorf("link %d: to %v, hop limit %d; want %s, %d", i, got, e.packet.data[7], want, 64-i)
		}
		n.Advance(n.events.Next(), nil)
	}
	if e := n.events.First(); isIPv6(e.packet.data) {
		t.Errorf("on the last link: %x", e.packet.data)
	}
}

func TestInject_labelsThatLeadNowhere(t *testing.T) {
	topo := fatTree(t, 4)
	src, near, far := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3"), host(t, topo, "h3.1.3")
	path := []int{2, 3, 3, 1}
	plain := udp(src.Addr, far.Addr, 1, 2, 100)
	with := func(ports ...int) []byte { return labelled(t, src.Addr, ports, plain) }
	sound := func() []byte { return with(path...) }
	edit := func(f func(b []byte)) []byte { b := sound(); f(b); return b }
	to := func(dst string) []byte {
		return edit(func(b []byte) { copy(b[24:], netip.MustParseAddr(dst).AsSlice()) })
	}
	const delivered = NumCauses
	for _, c := range []struct {
		name   string
		packet []byte
		want   Cause
	}{
		{"sound", sound(), delivered},
		{"with padding", append(sound(), make([]byte, 30)...), delivered},
		{"from the embedded stack", labelled(t, topo.EmbeddedAddr(src.ID), path, udp(topo.EmbeddedAddr(src.ID), far.Addr, 1, 2, 100)), delivered},
		{"hop limit just enough", edit(func(b []byte) { b[7] = 5 }), delivered},
		{"a way round", with(2, 3, 0, 1, 3, 3, 3, 1), delivered}, // up, down, up
		{"decapsulated at the first switch", with(), delivered},

		{"a byte", []byte{0x60}, Malformed},
		{"shorter than it says", sound()[:139], Malformed},
		{"payload longer", edit(func(b []byte) { b[4] = 1 }), Malformed},
		{"UDP in IPv6", edit(func(b []byte) { b[6] = 17 }), Malformed},
		{"inner truncated", edit(func(b []byte) { b[5] -= 50 }), Malformed},
		{"inner bad checksum", edit(func(b []byte) { b[50]++ }), Malformed},
		{"IP-in-IP inside", labelled(t, src.Addr, path, tunnel(t, src.Addr, host(t, topo, "3.0").Addr, plain)), Malformed},

		{"forged outer source", edit(func(b []byte) { copy(b[8:], topology.Addr6(near.Addr).AsSlice()) }), Spoofed},
		{"forged inner source", labelled(t, src.Addr, path, udp(near.Addr, far.Addr, 1, 2, 100)), Spoofed},
		{"forged both", labelled(t, near.Addr, path, udp(near.Addr, far.Addr, 1, 2, 100)), Spoofed},

		{"hop limit one short", edit(func(b []byte) { b[7] = 4 }), TTLExpired},
		{"hop limit 0", edit(func(b []byte) { b[7] = 0 }), TTLExpired},
		{"inner TTL ends at the edge", labelled(t, src.Addr, path, seal(func() []byte { b := bytes.Clone(plain); b[8] = 1; return b }())), TTLExpired},

		{"label beyond the ports", with(2, 3, 4, 1), NoLabel},
		{"highest label", with(2, 3, 3, encap.MaxSIDPort), NoLabel},
		{"reserved label", to("5f00:3e0:402:fe00::"), NoLabel},
		{"reserved label, the last", to("5f00:3ff::"), NoLabel},

		{"ends early at a core", to("5f00:304::"), LabelsEnd},
		{"ends early at once", to("5f00:300::"), LabelsEnd},
		{"no labels", to("5f00::"), LabelsEnd},
		{"a hole", to("5f00:3:402:fe00::"), LabelsEnd},
		{"decapsulation at a core", with(2, 3), delivered},
		{"decapsulation, and more", to("5f00:304:402:fe01::"), NoLabel},

		{"not a label", to("2001:db8::1"), NoRoute},
		{"not a label, but a host", to("fd77:6566:7400::a03:103"), delivered},
		{"the SID of IPv6, with IPv4 inside", to("5f00:304:402:fd00::"), Malformed},
		{"decapsulated for nobody", labelled(t, src.Addr, path, udp(src.Addr, netip.MustParseAddr("10.3.1.99"), 1, 2, 100)), NoRoute},

		{"out of a host's port", with(1, 0), NoLabel},
		{"to the host, not decapsulated", with(2, 3, 3, 1, 1), NoLabel},
		{"to the edge switch itself", labelled(t, src.Addr, path, udp(src.Addr, host(t, topo, "e3.1").Addr, 1, 2, 100)), NotForUs},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := network(t, topo, Config{})
			kept := slices.Clone(c.packet)
			n.Inject(src.ID, c.packet, 0)
			got := drain(n)
			want := Stats{Injected: 1}
			if c.want == delivered {
				want.Delivered = 1
			} else {
				want.Dropped[c.want] = 1
			}
			if s := n.Stats(); s != want || len(got) != int(want.Delivered) {
				t.Errorf("%d delivered, %+v, want %+v", len(got), s, want)
			}
			if !slices.Equal(c.packet, kept) {
				t.Error("the caller's bytes were changed")
			}
		})
	}
}

// A mark on the outer header ends on the inner one, or ends a packet that
// cannot carry it (RFC 6040).
func TestDecapsulate_marks(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	for _, ect := range []bool{false, true} {
		n := network(t, topo, Config{})
		inner := udp(src.Addr, dst.Addr, 1, 2, 100)
		if ect {
			inner[1] = 2
		}
		n.Inject(src.ID, labelled(t, src.Addr, []int{2, 3, 3, 1}, seal(inner)), 0)
		n.events.First().packet.data[1] |= 0x30
		got := drain(n)
		switch {
		case ect && (len(got) != 1 || got[0].packet[1] != 3):
			t.Errorf("capable of ECN: %+v, %+v", got, n.Stats())
		case !ect && (len(got) != 0 || n.Stats().Dropped[Malformed] != 1):
			t.Errorf("not capable of ECN: %+v, %+v", got, n.Stats())
		}
	}
}

// A label goes the way of its link: out of a port that the routes take for
// dead nothing is sent, and nothing arrives by a cable that is cut.
func TestPop_deadLinks(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	paths := topo.Paths(src.ID, dst.ID)
	cable := paths.Path(1).Links[2]
	n := network(t, topo, Config{})
	inject := func() {
		for i := range paths.Count() {
			n.Inject(src.ID, labelled(t, src.Addr, paths.Labels(i), udp(src.Addr, dst.Addr, 1, 2, 100)), 0)
		}
		drain(n)
	}
	if err := n.Impair(cable, Upward, Impairment{Down: true}); err != nil {
		t.Fatal(err)
	}
	inject()
	if s := n.Stats(); s.Delivered != 3 || s.Dropped[LinkDown] != 1 {
		t.Errorf("cut: %+v", s)
	}
	if err := n.SetTopology(topo.Without(cable)); err != nil {
		t.Fatal(err)
	}
	inject()
	if s := n.Stats(); s.Delivered != 6 || s.Dropped[NoLabel] != 1 {
		t.Errorf("known to be dead: %+v", s)
	}
}

// What links corrupt may be anything, and is counted.
func TestPop_corruptedPackets(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	const seed, packets = 4, 5000
	n := network(t, topo, Config{Seed: seed, QueueBytes: maxQueueBytes})
	for l := range topo.Links() {
		for _, d := range []Direction{Upward, Downward} {
			if err := n.Impair(l.ID, d, Impairment{Corrupt: 0.5}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range packets {
		n.Inject(src.ID, labelled(t, src.Addr, []int{2, 3, 3, 1}, udp(src.Addr, dst.Addr, 1, 2, 60)), 0)
	}
	drain(n)
	s := n.Stats()
	if !s.conserved() || s.InFlight != 0 || s.Dropped[NoLabel] == 0 || s.Dropped[Malformed] == 0 || s.Delivered == 0 {
		t.Errorf("seed %d: %+v", seed, s)
	}
}

func TestPop_allocatesNothing(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	n := network(t, topo, Config{})
	b := labelled(t, src.Addr, []int{2, 3, 3, 1}, udp(src.Addr, dst.Addr, 1, 2, 100))
	now := time.Duration(0)
	run := func() {
		now += time.Second
		n.Inject(src.ID, b, now-time.Second)
		n.Advance(now, func(topology.NodeID, []byte) {})
	}
	run()
	if got := testing.AllocsPerRun(100, run); got != 0 || n.Stats().Delivered < 100 {
		t.Errorf("%v allocations, %+v", got, n.Stats())
	}
}

func FuzzInject_labels(f *testing.F) {
	topo := fatTree(f, 4)
	src, far := host(f, topo, "h0.0.2"), host(f, topo, "h3.1.3")
	f.Add(labelled(f, src.Addr, []int{2, 3, 3, 1}, udp(src.Addr, far.Addr, 1, 2, 60)), true)
	f.Add(labelled(f, src.Addr, []int{2, 0}, udp(src.Addr, far.Addr, 1, 2, 60))[:70], true)
	f.Add([]byte{0x60}, false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend && len(b) >= 64 { // so that more than the first checks are reached
			b[0], b[6] = 0x60|b[0]&0xf, 4
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			b[24], b[25] = 0x5f, 0
			copy(b[8:], topology.Addr6(src.Addr).AsSlice())
			seal(b[40:])
		}
		n := network(t, topo, Config{})
		n.Inject(src.ID, b, 0)
		drain(n)
		if s := n.Stats(); s.Injected != 1 || s.InFlight != 0 || !s.conserved() {
			t.Errorf("%+v", s)
		}
	})
}
