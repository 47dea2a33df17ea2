package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"weft/encap"
	"weft/link"
)

// calls is an Underlay that keeps what each call sends, and by which path.
type calls struct {
	collector
	paths  []int
	counts []int // of datagrams
}

func (c *calls) Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error {
	before := len(c.sent)
	err := c.collector.Send(path, to, tos, parts, size)
	c.paths, c.counts = append(c.paths, path), append(c.counts, len(c.sent)-before)
	return err
}

// Acknowledgements that are read together leave together, whatever the cipher, and nothing
// overtakes what was read before it.
func TestTunnel_acknowledgementsLeaveTogether(t *testing.T) {
	long := func(b []byte) []byte { // with timestamps
		b = append(b[:40:40], 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)
		b[32] = 8 << 4
		binary.BigEndian.PutUint16(b[2:], 52)
		return fixed(b)
	}
	ack := func(n int) []byte {
		return with(dataPacket(1, 0), func(b []byte) { binary.BigEndian.PutUint32(b[28:], uint32(n)) })
	}
	for _, cipher := range []*encap.UDPCipher{nil, new(encap.UDPCipher), ptr(encap.UDPAESGCM), ptr(encap.UDPChaCha20Poly1305)} {
		u := &calls{}
		peer := Peer{Name: "b", Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		if cipher != nil {
			peer.Key = key(1)
			peer.Key.Cipher = *cipher
		}
		e, err := NewEgress(Config{Address: netip.MustParseAddr("10.200.0.1"), Policy: "presto", Seed: 1,
			Tunnel: &Tunnel{Underlay: u, Name: "a", Peers: []Peer{peer}}})
		if err != nil {
			t.Fatal(err)
		}
		var batch [][]byte
		for n := range 5 {
			batch = append(batch, ack(n))
		}
		batch = append(batch, dataPacket(1, 100))
		for n := range 70 {
			batch = append(batch, ack(5+n))
		}
		batch = append(batch, long(ack(75)), long(ack(76)), with(ack(77), func(b []byte) { b[1] = 0x80 }))
		send := func(packets [][]byte) {
			var bufs [][]byte
			var sizes []int
			for _, p := range packets {
				bufs, sizes = append(bufs, append(make([]byte, link.SuperHeadroom), p...)), append(sizes, len(p))
			}
			e.forward(bufs, sizes)
		}
		send(batch)
		if want := []int{5, 1, 64, 6, 2, 1}; !slices.Equal(u.counts, want) {
			t.Errorf("%v: calls of %v datagrams, want %v", cipher, u.counts, want)
		}
		for i, b := range u.sent {
			if inner := opened(t, peer.Key, u.sent[:i+1], b); string(inner) != string(batch[i]) {
				t.Fatalf("%v: packet %d is %x, want %x", cipher, i, inner, batch[i])
			}
		}
		stats, paths := e.Stats()
		packets := uint64(0)
		for _, p := range paths {
			packets += p.Packets
		}
		if n := uint64(len(batch)); stats.Packets != n || stats.Encapsulated != n || packets != n {
			t.Errorf("%v: %+v, %+v", cipher, stats, paths)
		}
		// The next batches take the other paths in turn.
		*u = calls{}
		for n := range 8 {
			send([][]byte{ack(n), ack(n + 1)})
		}
		if seen := slices.Compact(slices.Sorted(slices.Values(u.paths))); len(u.paths) != 8 || len(seen) != 4 {
			t.Errorf("%v: batches by the paths %v", cipher, u.paths)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// opened is the inner packet of the last of some datagrams, which none of the others was.
func opened(t *testing.T, key *encap.UDPKey, all [][]byte, b []byte) []byte {
	t.Helper()
	if key == nil {
		_, inner, err := encap.ParseUDP(b)
		if err != nil {
			t.Fatal(err)
		}
		return inner
	}
	o, err := encap.NewOpener(*key, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range all[:len(all)-1] {
		if string(before[12:24]) == string(b[12:24]) {
			t.Fatalf("nonce %x a second time", b[12:24])
		}
	}
	_, inner, err := o.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	return inner
}
