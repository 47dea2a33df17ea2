package link

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestVnetHeader_layout compares with struct virtio_net_hdr, byte by byte.
func TestVnetHeader_layout(t *testing.T) {
	h := VnetHeader{Flags: VnetNeedsCsum, GSOType: VnetGSOTCPv6 | VnetGSOECN, HdrLen: 0x0102, GSOSize: 0x0304, CsumStart: 0x0506, CsumOffset: 0x0708}
	want := [VnetHeaderLen]byte{1, 0x84, 2, 1, 4, 3, 6, 5, 8, 7}
	var got [VnetHeaderLen]byte
	if h.Put(&got); got != want {
		t.Errorf("encoded as % x, want % x", got, want)
	}
	if back := ParseVnetHeader(&got); back != h {
		t.Errorf("decoded as %+v, want %+v", back, h)
	}
}

func TestVnetHeader_check(t *testing.T) {
	tcp := VnetHeader{Flags: VnetNeedsCsum, GSOType: VnetGSOTCPv4, HdrLen: 40, GSOSize: 1448, CsumStart: 20, CsumOffset: 16}
	with := func(f func(*VnetHeader)) VnetHeader { h := tcp; f(&h); return h }
	tests := []struct {
		name string
		h    VnetHeader
		size int
		want error
	}{
		{"complete packet", VnetHeader{}, 0, nil},
		{"verified", VnetHeader{Flags: VnetDataValid, CsumStart: 9999}, 20, nil},
		{"super-segment", tcp, 40, nil},
		{"with ECN", with(func(h *VnetHeader) { h.GSOType |= VnetGSOECN }), 3000, nil},
		{"UDP", with(func(h *VnetHeader) { h.GSOType = VnetGSOUDP }), 3000, nil},
		{"field ends with the packet", with(func(h *VnetHeader) { h.HdrLen = 0 }), 38, nil},
		{"field ends behind the packet", with(func(h *VnetHeader) { h.HdrLen = 0 }), 37, errCsumRange},
		{"start far outside", with(func(h *VnetHeader) { h.CsumStart, h.CsumOffset = 65535, 65535 }), 65535, errCsumRange},
		{"headers longer than the packet", tcp, 39, errHdrLen},
		{"fragments of a datagram", with(func(h *VnetHeader) { h.GSOType = 3 }), 3000, errGSOType},
		{"ECN alone", with(func(h *VnetHeader) { h.GSOType = VnetGSOECN }), 3000, errGSOType},
		{"no segment size", with(func(h *VnetHeader) { h.GSOSize = 0 }), 3000, errGSOSize},
	}
	for _, tt := range tests {
		if got := tt.h.Check(tt.size); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestVnetHeader_shift(t *testing.T) {
	h := VnetHeader{Flags: VnetNeedsCsum, GSOType: VnetGSOTCPv4, HdrLen: 40, GSOSize: 1448, CsumStart: 20, CsumOffset: 16}
	there := h.shift(14)
	if there.HdrLen != 54 || there.CsumStart != 34 || there.CsumOffset != 16 || there.GSOSize != 1448 {
		t.Errorf("shifted by 14: %+v", there)
	}
	if back := there.shift(-14); back != h {
		t.Errorf("and back: %+v", back)
	}
	if got := (VnetHeader{CsumStart: 3, Flags: VnetDataValid}).shift(-14); got.CsumStart != 3 || got.HdrLen != 0 {
		t.Errorf("what means nothing was shifted: %+v", got)
	}
	// An Ethernet header that the kernel's offsets say to be in is nonsense.
	for _, bad := range []VnetHeader{
		{Flags: VnetNeedsCsum, CsumStart: 13},
		{GSOType: VnetGSOTCPv4, GSOSize: 1, HdrLen: 13},
	} {
		if bad.shift(-14).Check(MaxSuperLen-1) == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

// TestVnetHeader_complete has a slow sum as its oracle, at all lengths and
// alignments of the end.
func TestVnetHeader_complete(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for size := 2; size < 200; size++ {
		for _, fill := range []byte{0, 0xff, 1} {
			b := bytes.Repeat([]byte{fill}, size)
			if fill == 1 {
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
			}
			start := rng.IntN(size - 1)
			h := VnetHeader{Flags: VnetNeedsCsum, CsumStart: uint16(start), CsumOffset: uint16(rng.IntN(size - 1 - start))}
			want := ^slowSum(b[start:])
			if want == 0 {
				want = 0xffff
			}
			h.complete(b)
			if got := binary.BigEndian.Uint16(b[int(h.CsumStart)+int(h.CsumOffset):]); got != want {
				t.Fatalf("size %d, fill %d, start %d: %#x, want %#x", size, fill, start, got, want)
			}
		}
	}
}

// slowSum is RFC 1071, word by word.
func slowSum(b []byte) uint16 {
	var sum uint32
	for i, v := range b {
		if i%2 == 0 {
			sum += uint32(v) << 8
		} else {
			sum += uint32(v)
		}
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// FuzzVnetHeader: what passes Check can be completed within the packet, and any
// header survives encoding.
func FuzzVnetHeader(f *testing.F) {
	f.Add([]byte{1, 1, 40, 0, 0xa8, 5, 20, 0, 16, 0}, make([]byte, 60))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{1, 2})
	f.Fuzz(func(t *testing.T, header, packet []byte) {
		if len(header) < VnetHeaderLen {
			return
		}
		in := (*[VnetHeaderLen]byte)(header)
		h := ParseVnetHeader(in)
		var out [VnetHeaderLen]byte
		if h.Put(&out); out != *in {
			t.Errorf("% x became % x", in, out)
		}
		for _, h := range []VnetHeader{h, h.shift(ethernetLen), h.shift(-ethernetLen)} {
			if h.Check(len(packet)) == nil {
				h.complete(packet)
			}
		}
	})
}

// FuzzHandOver hands over what the kernel might give: any header, any packet,
// any buffer.
func FuzzHandOver(f *testing.F) {
	f.Add([]byte{1, 1, 40, 0, 0xa8, 5, 20, 0, 16, 0}, make([]byte, 60), true)
	f.Fuzz(func(t *testing.T, header, packet []byte, super bool) {
		if len(header) < VnetHeaderLen || len(packet) == 0 {
			return
		}
		buf := append(make([]byte, SuperHeadroom), packet...)
		h := ParseVnetHeader((*[VnetHeaderLen]byte)(header))
		ok := handOver(h, buf, SuperHeadroom, len(packet), super)
		if got := buf[SuperHeadroom-VnetHeaderLen : SuperHeadroom]; ok && super && !bytes.Equal(got, header[:VnetHeaderLen]) {
			t.Errorf("header % x handed over as % x", header[:VnetHeaderLen], got)
		}
		if ok && h.Check(len(packet)) != nil {
			t.Errorf("%+v handed over for %d bytes", h, len(packet))
		}
		if n := ipLen(packet); n < 0 || n > 40+65535 {
			t.Errorf("IP length %d", n)
		}
	})
}
