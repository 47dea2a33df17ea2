package simnet

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

func parse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	topo, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func fatTree(t testing.TB, k int) *topology.Topology {
	t.Helper()
	topo, err := topology.FatTree(k)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func network(t testing.TB, topo *topology.Topology, c Config) *Network {
	t.Helper()
	if c.RateBits == 0 {
		c.RateBits = 100e6
	}
	n, err := New(topo, c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func host(t testing.TB, topo *topology.Topology, name string) topology.Node {
	t.Helper()
	n, err := topo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// udp returns a UDP datagram of size bytes in all, at least 32; number is in
// its first four payload bytes.
func udp(src, dst netip.Addr, port uint16, number uint32, size int) []byte {
	b := make([]byte, size)
	b[0], b[8], b[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	binary.BigEndian.PutUint16(b[6:], 0x4000)
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(b[20:], port)
	binary.BigEndian.PutUint16(b[22:], 9)
	binary.BigEndian.PutUint16(b[24:], uint16(size-20))
	binary.BigEndian.PutUint32(b[28:], number)
	return seal(b)
}

// seal sets the header checksum, if there is a header.
func seal(b []byte) []byte {
	if len(b) < 20 {
		return b
	}
	ihl := min(max(int(b[0]&0xf)*4, 20), len(b))
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], checksum(b[:ihl]))
	return b
}

func payloadNumber(b []byte) uint32 { return binary.BigEndian.Uint32(b[28:]) }

// tunnel puts an outer header in front of inner.
func tunnel(t testing.TB, src, dst netip.Addr, inner []byte) []byte {
	t.Helper()
	h, err := encap.NewIPIP(src, dst)
	if err != nil {
		t.Fatal(err)
	}
	b := append(make([]byte, encap.Overhead), inner...)
	if err := h.Encapsulate(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

type delivery struct {
	at     time.Duration
	host   topology.NodeID
	packet []byte
}

// drain runs the network until it is empty.
func drain(n *Network) (all []delivery) {
	for {
		at, ok := n.NextDeadline()
		if !ok {
			return all
		}
		n.Advance(at, func(host topology.NodeID, b []byte) {
			all = append(all, delivery{at, host, append([]byte(nil), b...)})
		})
	}
}

func (s Stats) dropped() (sum uint64) {
	for _, d := range s.Dropped {
		sum += d
	}
	return sum
}

func (s Stats) conserved() bool {
	return s.Injected+s.Duplicated == s.Delivered+s.dropped()+uint64(s.InFlight)
}
