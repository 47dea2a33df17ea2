package dataplane

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
)

// datagrams is a packet of so many datagrams of 100 bytes each under one header,
// as UDP_SEGMENT makes them.
func datagrams(n int) []byte {
	b := make([]byte, 28+100*n)
	copy(b, dataPacket(1, 0)[:20])
	b[9] = flowcell.ProtoUDP
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[20:], 5000)
	binary.BigEndian.PutUint16(b[22:], 5001)
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	for i := range b[28:] {
		b[28+i] = byte(i / 100)
	}
	return fixed(b)
}

// validDatagram reports whether b is the i-th of datagrams, with a right
// checksum.
func validDatagram(b []byte, i int) bool {
	ip := header.IPv4(b)
	u := header.UDP(ip.Payload())
	return ip.IsChecksumValid() && len(b) == 128 && int(u.Length()) == 108 && b[28] == byte(i) && b[127] == byte(i) &&
		u.IsChecksumValid(ip.SourceAddress(), ip.DestinationAddress(), sumOf(b[28:]))
}

// sumOf is the checksum of a payload, the obvious way.
func sumOf(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// Programs that send with UDP_SEGMENT get their datagrams through, each by
// itself.
func TestTunnel_datagramsUnderOneHeader(t *testing.T) {
	u := &collector{}
	over := Tunnel{Underlay: u, Peers: []Peer{{Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}
	e, err := NewEgress(Config{Address: netip.MustParseAddr("10.200.0.1"), Tunnel: &over, Policy: "presto", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	buf := append(make([]byte, link.SuperHeadroom), datagrams(7)...)
	h := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOUDP, HdrLen: 28, GSOSize: 100, CsumStart: 20, CsumOffset: 6}
	h.Put((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
	e.forward([][]byte{buf}, []int{len(buf) - link.SuperHeadroom})
	if len(u.sent) != 7 {
		t.Fatalf("%d datagrams; %+v", len(u.sent), e.stats)
	}
	for i, b := range u.sent {
		h, inner, err := encap.ParseUDP(b)
		if err != nil || !h.Partial {
			t.Fatalf("%v, %+v", err, h)
		}
		complete(inner, 20, udpChecksumAt)
		if !validDatagram(inner, i) {
			t.Errorf("datagram %d: %x", i, inner)
		}
	}
	if s := e.stats; s.Malformed != 0 || s.Encapsulated != 7 {
		t.Errorf("%+v", s)
	}
}

// collector is an Underlay that keeps datagrams.
type collector struct {
	Underlay
	sent [][]byte
}

func (c *collector) Paths() int { return 4 }
func (c *collector) MTU() int   { return 1500 }

func (c *collector) Send(_ int, _ netip.AddrPort, _ byte, parts [][]byte, size int) error {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	for len(all) > 0 {
		n := min(size, len(all))
		c.sent, all = append(c.sent, all[:n]), all[n:]
	}
	return nil
}

// one is a SuperDevice that gives one packet to read.
type one struct {
	SuperDevice
	vnet link.VnetHeader
	b    []byte
}

func (d one) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	d.vnet.Put((*[link.VnetHeaderLen]byte)(bufs[0][offset-link.VnetHeaderLen:]))
	sizes[0] = copy(bufs[0][offset:], d.b)
	return 1, nil
}

func TestSuperSource_cutsDatagrams(t *testing.T) {
	h := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOUDP, HdrLen: 28, GSOSize: 100, CsumStart: 20, CsumOffset: 6}
	s := newSuperSource(one{vnet: h, b: datagrams(5)})
	bufs := make([][]byte, superBatch)
	for i := range bufs {
		bufs[i] = make([]byte, SuperBuffer)
	}
	if err := s.read(bufs); err != nil {
		t.Fatal(err)
	}
	n := 0
	for a, ok := s.next(); ok; a, ok = s.next() {
		if !validDatagram(a.Bytes, n) || !a.verified || a.MSS != 0 || a.Alone {
			t.Errorf("datagram %d: %x, %+v", n, a.Bytes, a)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d datagrams", n)
	}
}

// A UDP checksum that comes out as 0 would say that there is none.
func TestComplete_neverZero(t *testing.T) {
	b := []byte{0xff, 0xff, 0, 0}
	if complete(b, 0, 2); b[2] != 0xff || b[3] != 0xff {
		t.Errorf("%x", b)
	}
}
