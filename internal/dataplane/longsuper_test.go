package dataplane

import (
	"encoding/binary"
	"slices"
	"testing"

	"weft/flowcell"
	"weft/gso"
	"weft/link"
)

// longSuper is a super-segment of TCP that has no length in its header.
func longSuper(payload int) []byte {
	b := append(dataPacket(1, 0)[:40:40], make([]byte, payload)...)
	for i := range payload {
		b[40+i] = byte(i * 7 >> 4)
	}
	b[2], b[3], b[32], b[33] = 0, 0, 5<<4, flowcell.FlagACK|flowcell.FlagPSH
	return fixed(b)
}

// A super-segment of more than 64 KB is divided into such as have a length. Cut into segments
// these are what the whole is, numbers and all, and only the first counts as a packet.
func TestSuperSource_dividesLongOnes(t *testing.T) {
	const mss, longest = 1448, 524280
	h := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv4, HdrLen: 40, GSOSize: mss, CsumStart: 20, CsumOffset: 16}
	for _, payload := range []int{65535 - 39, 45 * mss * 2, 45*mss*2 + 1, 100_000, 196_000, longest - 200} {
		whole := longSuper(payload)
		s := newSuperSource(one{vnet: h, b: whole}).upTo(longest)
		want := segmentsOf(t, whole, mss)
		first, seen := true, 0
		for a, ok := readOne(t, s); ok; a, ok = s.next() {
			var p flowcell.Packet
			if err := p.Parse(a.Bytes); err != nil || len(a.Bytes) > link.MaxSuperLen || a.rest == first || a.Alone || !a.verified {
				t.Fatalf("%d bytes: %v, part of %d bytes, %+v", payload, err, len(a.Bytes), a.vnet)
			}
			if err := a.vnet.Check(len(a.Bytes)); err != nil || a.vnet.GSO() != (int(p.Payload) > mss) {
				t.Errorf("%d bytes: %+v, %v", payload, a.vnet, err)
			}
			first = false
			if n := uint16(a.number) - binary.BigEndian.Uint16(whole[4:]); !a.numbered || int(n) != seen {
				t.Errorf("%d bytes: number %d more than the first, %d segments before", payload, n, seen)
			}
			for _, got := range segmentsOf(t, a.Bytes, mss) {
				if seen == len(want) {
					t.Fatalf("%d bytes: more than %d segments", payload, seen)
				}
				// Whoever writes the whole packet gives the segments their IDs.
				copy(got[4:6], want[seen][4:6])
				copy(got[10:12], want[seen][10:12])
				if !slices.Equal(got, want[seen]) {
					t.Fatalf("%d bytes: segment %d differs:\n%x\n%x", payload, seen, got[:44], want[seen][:44])
				}
				seen++
			}
		}
		if seen != len(want) {
			t.Errorf("%d bytes: %d segments, want %d", payload, seen, len(want))
		}
	}
}

// What may not be divided counts as malformed: its checksum is not known to be right, or it
// is not what it says.
func TestSuperSource_refusesLongOnes(t *testing.T) {
	good := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv4, HdrLen: 40, GSOSize: 1448, CsumStart: 20, CsumOffset: 16}
	for name, change := range map[string]func(*link.VnetHeader, []byte){
		"not verified":  func(h *link.VnetHeader, _ []byte) { h.Flags = 0 },
		"huge segments": func(h *link.VnetHeader, _ []byte) { h.GSOSize = 65500 },
		"fragment":      func(_ *link.VnetHeader, b []byte) { b[6] = 0x20 },
		"UDP":           func(_ *link.VnetHeader, b []byte) { b[9] = flowcell.ProtoUDP },
		"a length":      func(_ *link.VnetHeader, b []byte) { b[3] = 77 },
		"IPv6":          func(_ *link.VnetHeader, b []byte) { b[0] = 0x60 },
	} {
		h, b := good, longSuper(150_000)
		change(&h, b)
		s := newSuperSource(one{vnet: h, b: b}).upTo(200_000)
		a, ok := readOne(t, s)
		if _, more := s.next(); !ok || more || a.Bytes != nil {
			t.Errorf("%s: %d bytes, %v", name, len(a.Bytes), more)
		}
	}
}

func readOne(t *testing.T, s *superSource) (Arrived, bool) {
	t.Helper()
	n, size := s.batch()
	bufs := make([][]byte, n)
	bufs[0] = make([]byte, size)
	if err := s.read(bufs); err != nil {
		t.Fatal(err)
	}
	return s.next()
}

func segmentsOf(t *testing.T, b []byte, mss int) (all [][]byte) {
	t.Helper()
	var s gso.Segmenter
	if err := s.Start([][]byte{b}, mss, gso.Complete); err != nil {
		t.Fatal(err)
	}
	for s.Left() > 0 {
		segment := make([]byte, s.NextLen())
		s.Next(segment)
		all = append(all, segment)
	}
	return all
}
