package link

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// traffic is one direction of a flow, made and checked without the code under
// test: packets carry the bytes of a stream that both ends know, and the
// receiver wants them in order and without gaps, in whatever pieces they come.
type traffic struct {
	src, dst netip.Addr
	proto    byte // 1 ICMP, 6 TCP, 17 UDP, 58 ICMPv6
	port     uint16
	mss      int // payload of a segment
	sent     int // bytes of the stream
	got      int
	pieces   int // packets received
	whole    int // super-segments among them
}

// stream is what is sent, again and again. Its length is a prime, so that no
// piece looks like one that is shifted by a round size.
var stream = func() []byte {
	rng := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, 104729+MaxSuperLen)
	for i := range b[:104729] {
		b[i] = byte(rng.Uint32())
	}
	copy(b[104729:], b)
	return b
}()

func piece(at, n int) []byte { return stream[at%104729:][:n] }

func (f *traffic) transportLen() int {
	if f.proto == 6 {
		return 20
	}
	return 8
}

func (f *traffic) headerLen() int {
	if f.src.Is6() {
		return 40 + f.transportLen()
	}
	return 20 + f.transportLen()
}

// packet puts the next n bytes of the stream into a packet at b[offset:], with
// its VnetHeader before, and returns b cut to its length.
func (f *traffic) packet(b []byte, offset, n int) []byte {
	b = b[:offset+f.headerLen()+n]
	p := b[offset:]
	clear(p[:f.headerLen()])
	ip := f.headerLen() - f.transportLen()
	if f.src.Is6() {
		p[0], p[6], p[7] = 0x60, f.proto, 64
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
		copy(p[8:], f.src.AsSlice())
		copy(p[24:], f.dst.AsSlice())
	} else {
		p[0], p[6], p[8], p[9] = 0x45, 0x40, 64, f.proto
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		copy(p[12:], f.src.AsSlice())
		copy(p[16:], f.dst.AsSlice())
		binary.BigEndian.PutUint16(p[10:], ^slowSum(p[:20]))
	}
	h := f.transport(p[ip:], ip, n)
	copy(p[f.headerLen():], piece(f.sent, n))
	if f.proto == 1 || f.proto == 58 { // nobody completes these
		binary.BigEndian.PutUint16(p[ip+2:], ^f.sum(p[ip:]))
	}
	h.Put((*[VnetHeaderLen]byte)(b[offset-VnetHeaderLen:]))
	f.sent += n
	return b
}

// transport writes the header at t, which is at byte ip of the packet.
func (f *traffic) transport(t []byte, ip, n int) (h VnetHeader) {
	h = VnetHeader{Flags: VnetNeedsCsum, CsumStart: uint16(ip)}
	switch f.proto {
	case 6:
		binary.BigEndian.PutUint16(t[0:], f.port)
		binary.BigEndian.PutUint16(t[2:], f.port)
		binary.BigEndian.PutUint32(t[4:], uint32(f.sent))
		t[12], t[13], h.CsumOffset, h.GSOType = 5<<4, 0x10, 16, VnetGSOTCPv4
		if f.src.Is6() {
			h.GSOType = VnetGSOTCPv6
		}
	case 17:
		binary.BigEndian.PutUint16(t[0:], f.port)
		binary.BigEndian.PutUint16(t[2:], f.port)
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
		h.CsumOffset, h.GSOType = 6, VnetGSOUDP
	case 1, 58:
		t[0] = 129 // echo reply of ICMPv6; nothing in ICMP: the kernel answers neither
		return VnetHeader{}
	}
	binary.BigEndian.PutUint16(t[h.CsumOffset:], f.pseudo(len(t)))
	if n <= f.mss {
		h.GSOType = VnetGSONone
	} else {
		h.GSOSize, h.HdrLen = uint16(f.mss), uint16(f.headerLen())
	}
	return h
}

// pseudo is the sum over the pseudo-header of n bytes of transport.
func (f *traffic) pseudo(n int) uint16 {
	if f.proto == 1 {
		return 0
	}
	b := append(f.src.AsSlice(), f.dst.AsSlice()...)
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n), 0, 0, 0, f.proto)
	return slowSum(b)
}

// sum is over the pseudo-header and t; 0xffff if the checksum in t is right.
func (f *traffic) sum(t []byte) uint16 {
	s := uint32(f.pseudo(len(t))) + uint32(slowSum(t))
	return uint16(s&0xffff + s>>16)
}

// receive checks a packet and reports whether it is one of the flow's.
func (f *traffic) receive(h VnetHeader, p []byte) (bool, error) {
	if !f.mine(p) {
		return false, nil
	}
	ip, head := f.headerLen()-f.transportLen(), f.headerLen()
	n := len(p) - head
	switch {
	case ipLen(p) != len(p):
		return true, fmt.Errorf("%d bytes, but IP says %d", len(p), ipLen(p))
	case f.src.Is4() && slowSum(p[:20]) != 0xffff:
		return true, fmt.Errorf("IP checksum is wrong: % x", p[:20])
	case f.proto == 6 && binary.BigEndian.Uint32(p[ip+4:]) != uint32(f.got):
		return true, fmt.Errorf("sequence %d, want %d", binary.BigEndian.Uint32(p[ip+4:]), f.got)
	case n < 0 || f.got+n > f.sent || string(p[head:]) != string(piece(f.got, n)):
		return true, fmt.Errorf("payload of %d bytes at %d is not what was sent", n, f.got)
	case n > f.mss && !h.GSO() && f.proto != 1 && f.proto != 58:
		return true, fmt.Errorf("%d bytes of payload, but no super-segment: %+v", n, h)
	case h.GSO() && int(h.GSOSize) != f.mss:
		return true, fmt.Errorf("segments of %d bytes, want %d", h.GSOSize, f.mss)
	}
	if h.Flags&VnetNeedsCsum != 0 {
		if int(h.CsumStart) != ip {
			return true, fmt.Errorf("CsumStart is %d, want %d", h.CsumStart, ip)
		}
		field := p[ip+int(h.CsumOffset):]
		if got := binary.BigEndian.Uint16(field); got != f.pseudo(len(p)-ip) {
			return true, fmt.Errorf("unfinished checksum %#x is not the pseudo-header's", got)
		}
	} else if f.sum(p[ip:]) != 0xffff {
		return true, fmt.Errorf("checksum of %d bytes is wrong", len(p))
	}
	f.got += n
	f.pieces++
	if h.GSO() {
		f.whole++
	}
	return true, nil
}

func (f *traffic) mine(p []byte) bool {
	if len(p) < f.headerLen() {
		return false
	}
	version, src, proto, ip := byte(4), p[12:16], p[9], 20
	if f.src.Is6() {
		version, src, proto, ip = 6, p[8:24], p[6], 40
	}
	if p[0]>>4 != version || string(src) != string(f.src.AsSlice()) || proto != f.proto {
		return false
	}
	if proto == 1 || proto == 58 {
		return p[ip] == 129 // and not the kernel's neighbour discovery
	}
	return binary.BigEndian.Uint16(p[ip:]) == f.port
}
