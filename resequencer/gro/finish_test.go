package gro

import (
	"bytes"
	"encoding/binary"
	"testing"

	"weft/flowcell"
)

// merge is what a caller does with packets that a train has accepted.
func merge(tr *Train, packets [][]byte) []byte {
	b := bytes.Clone(packets[0])
	for _, p := range packets[1:] {
		b = append(b, p[tr.HeaderLen():]...)
	}
	tr.Finish(b)
	return b
}

// A train finished is the packet that one large segment would have been.
func TestFinish_makesTheHeadersOfOneSegment(t *testing.T) {
	for _, version := range []int{4, 6} {
		for _, flags := range []uint8{0, flowcell.FlagPSH, flowcell.FlagFIN, flowcell.FlagPSH | flowcell.FlagFIN} {
			first := data(version, 101)
			second := first.after(101)
			third := second.after(40)
			third.flags |= flags
			tr := train(t, true, first, second, third)
			got := merge(tr, [][]byte{first.bytes(), second.bytes(), third.bytes()})

			want := first
			want.flags |= flags
			want.payload = append(append(append([]byte(nil), first.payload...), second.payload...), third.payload...)
			if b := complete(t, got); !bytes.Equal(b, want.bytes()) {
				t.Errorf("IPv%d, flags %02x:\n%x, want\n%x", version, flags, b, want.bytes())
			}
			again := bytes.Clone(got)
			if !tr.Finish(again) || !bytes.Equal(again, got) {
				t.Errorf("IPv%d: a second Finish changes\n%x to\n%x", version, got, again)
			}
		}
	}
}

// complete checks that the TCP checksum of a finished packet is its
// pseudo-header's and does what a device does with NEEDS_CSUM.
func complete(t *testing.T, b []byte) []byte {
	t.Helper()
	ip := ipv4Header
	if b[0]>>4 == 6 {
		ip = ipv6Header
	}
	if got, want := binary.BigEndian.Uint16(b[ip+16:]), sum(pseudoHeader(b, ip)); got != want {
		t.Fatalf("TCP checksum %04x, but the pseudo-header's is %04x", got, want)
	}
	b = bytes.Clone(b)
	binary.BigEndian.PutUint16(b[ip+16:], ^sum(b[ip:]))
	return b
}

func TestFinish_keepsWhatWasNotMerged(t *testing.T) {
	p := data(4, 100)
	p.gsoSize = 40
	other := data(4, 100).after(50)
	other.ports[0]++
	for _, first := range []packet{p, data(6, 0)} {
		var tr Train
		tr.Start(first.bytes(), first.gsoSize)
		tr.Add(other.bytes(), 0)
		b := first.bytes()
		b[ipv4Header+16] ^= 0xff // and be it wrong
		before := bytes.Clone(b)
		if tr.Finish(b) || !bytes.Equal(b, before) {
			t.Errorf("%x became %x", before, b)
		}
	}
}

func TestFinish_wrongHeaderChecksumStaysWrong(t *testing.T) {
	p := data(4, 100)
	for bit := range 16 {
		first := p.bytes()
		first[10+bit/8] ^= 1 << (bit % 8)
		var tr Train
		tr.Start(first, 0)
		if !tr.Add(p.after(100).bytes(), 0) || !tr.Finish(first) {
			t.Fatal("not merged")
		}
		if sum(first[:ipv4Header]) == 0xffff {
			t.Errorf("bit %d: a wrong checksum has become right", bit)
		}
	}
}

func TestFold_addsAllCarries(t *testing.T) {
	for sum, want := range map[uint32]uint16{
		0: 0, 0xffff: 0xffff, 0x10000: 1, 0x1fffe: 0xffff, 0x1ffff: 1, 0x2fffd: 0xffff, 0x2ffff: 2, 0x13_ffff: 0x13,
	} {
		if got := fold(sum); got != want {
			t.Errorf("%x becomes %x, want %x", sum, got, want)
		}
	}
}
