package simnet

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"weft/encap"
	"weft/topology"
)

// udp6 is a datagram between the IPv6 addresses that belong to two IPv4 addresses.
func udp6(src, dst netip.Addr, length int) []byte {
	b := make([]byte, length)
	b[0], b[6], b[7] = 0x60, 17, 64
	binary.BigEndian.PutUint16(b[4:], uint16(length-40))
	copy(b[8:], topology.Addr6(src).AsSlice())
	copy(b[24:], topology.Addr6(dst).AsSlice())
	binary.BigEndian.PutUint16(b[44:], uint16(length-40))
	return b
}

// wrapped puts an outer header before a packet.
func wrapped(t *testing.T, o encap.Outer, err error, inner []byte) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 1)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// IPv6 goes where the IPv4 addresses would lead it: plain, behind an outer header and behind
// labels.
func TestInject_routesIPv6(t *testing.T) {
	topo := fatTree(t, 4)
	src, near, far, core := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3"), host(t, topo, "h3.1.3"), host(t, topo, "3.0")
	plain := func(dst netip.Addr) []byte { return udp6(src.Addr, dst, 100) }
	bounce := func(inner []byte) []byte {
		o, err := encap.NewIPIPOuter(src.Addr, core.Addr)
		return wrapped(t, o, err, inner)
	}
	labels := func(ports []int, inner []byte) []byte {
		sids, err := encap.SIDs(ports)
		if err != nil {
			t.Fatal(err)
		}
		o, err := encap.NewSRv6Outer(topology.Addr6(src.Addr), sids)
		return wrapped(t, o, err, inner)
	}
	edit := func(b []byte, f func(b []byte)) []byte { f(b); return b }
	const delivered = NumCauses
	for name, c := range map[string]struct {
		packet []byte
		want   Cause
	}{
		"plain":                        {plain(far.Addr), delivered},
		"to the embedded stack":        {plain(topo.EmbeddedAddr(far.ID)), delivered},
		"with padding":                 {append(plain(far.Addr), 1, 2, 3), delivered},
		"bounced by a core":            {bounce(plain(far.Addr)), delivered},
		"by labels":                    {labels([]int{2, 3}, plain(far.Addr)), delivered},
		"hop limit just enough":        {edit(plain(far.Addr), func(b []byte) { b[7] = 6 }), delivered},
		"hop limit 5":                  {edit(plain(far.Addr), func(b []byte) { b[7] = 5 }), TTLExpired},
		"inner limit at a bounce":      {bounce(edit(plain(far.Addr), func(b []byte) { b[7] = 1 })), TTLExpired},
		"longer than it says":          {edit(plain(far.Addr), func(b []byte) { b[5]++ }), Malformed},
		"a jumbogram":                  {edit(plain(far.Addr), func(b []byte) { b[4], b[5], b[6] = 0, 0, 0 }), Malformed},
		"to another network":           {edit(plain(far.Addr), func(b []byte) { b[24]++ }), NoRoute},
		"to nobody":                    {plain(netip.MustParseAddr("10.0.0.99")), NoRoute},
		"inner source forged":          {bounce(udp6(near.Addr, far.Addr, 100)), Spoofed},
		"forged behind labels":         {labels([]int{2, 3}, udp6(near.Addr, far.Addr, 100)), Spoofed},
		"IPv6 by the SID of IPv4":      {edit(labels([]int{2, 3}, plain(far.Addr)), func(b []byte) { b[28] = encap.SIDDecap }), Malformed},
		"to the core itself":           {bounce(plain(core.Addr)), NotForUs},
		"from somebody we do not know": {bounce(edit(plain(far.Addr), func(b []byte) { b[8]++ })), Spoofed},
	} {
		n := network(t, topo, Config{})
		n.Inject(src.ID, c.packet, 0)
		got := drain(n)
		want := Stats{Injected: 1}
		if c.want == delivered {
			want.Delivered = 1
		} else {
			want.Dropped[c.want] = 1
		}
		if s := n.Stats(); s != want || len(got) != int(want.Delivered) {
			t.Errorf("%s: %d delivered, %+v, want %+v", name, len(got), s, want)
		}
		if len(got) == 1 && (len(got[0].packet) != 100 || got[0].packet[0]>>4 != 6) {
			t.Errorf("%s: %x", name, got[0].packet)
		}
	}
}
