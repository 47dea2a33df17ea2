package encap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"
)

// Path 7, flowcell 1234, packet deadbeef, feedback 2 about path 9; without and
// with feedback.
const (
	goldenPlain    = "10" + "07" + "1234" + "deadbeef" + "00000000"
	goldenFeedback = "16" + "07" + "1234" + "deadbeef" + "09000002"
)

var (
	plainHeader    = UDPHeader{Path: 7, Flowcell: 0x1234, Number: 0xdeadbeef}
	feedbackHeader = UDPHeader{Path: 7, Flowcell: 0x1234, Number: 0xdeadbeef, Feedback: 9<<24 | 2, HasFeedback: true, Partial: true}
)

// inner6 returns an IPv6 packet of no next header with n bytes of payload.
func inner6(n int) []byte {
	b := make([]byte, 40+n)
	b[0], b[6], b[7] = 0x60, 59, 64
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	return b
}

// plain returns a datagram's payload without a MAC.
func plain(h UDPHeader, inner []byte) []byte {
	b := append(make([]byte, UDPOverhead), inner...)
	PutUDP(b, h)
	return b
}

func TestPutUDP_golden(t *testing.T) {
	for _, c := range []struct {
		h    UDPHeader
		want string
	}{
		{plainHeader, goldenPlain},
		{feedbackHeader, goldenFeedback},
		{UDPHeader{Feedback: 5}, "100000000000000000000000"}, // not without HasFeedback
		{UDPHeader{HasFeedback: true}, "140000000000000000000000"},
	} {
		b := bytes.Repeat([]byte{0xee}, UDPOverhead+1)
		PutUDP(b, c.h)
		if got := hex.EncodeToString(b); got != c.want+"ee" {
			t.Errorf("%+v: got %s, want %s and one byte ee", c.h, got, c.want)
		}
	}
}

func TestParseUDP_returnsWhatWasPut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		h := UDPHeader{Path: uint8(r.Uint32()), Flowcell: uint16(r.Uint32()), Number: r.Uint32(), Partial: r.IntN(2) == 0}
		if h.HasFeedback = r.IntN(2) == 0; h.HasFeedback {
			h.Feedback = r.Uint32()
		}
		inner := unhex(goldenInner)
		if r.IntN(2) == 0 {
			inner = inner6(r.IntN(100))
		}
		b := plain(h, inner)
		got, rest, err := ParseUDP(b)
		if err != nil || got != h || !bytes.Equal(rest, inner) || &rest[0] != &b[UDPOverhead] {
			t.Fatalf("%+v %x became %+v %x, %v", h, inner, got, rest, err)
		}
	}
}

func TestParseUDP_refuses(t *testing.T) {
	inner := unhex(goldenInner)
	change := func(at int, to byte) []byte {
		b := plain(plainHeader, inner)
		b[at] = to
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrTruncated},
		{"half a header", plain(plainHeader, nil)[:UDPOverhead-1], ErrTruncated},
		{"no packet", plain(plainHeader, nil), ErrTruncated},
		{"version 0", change(0, 0x00), ErrUDPVersion},
		{"version 2", change(0, 0x20), ErrUDPVersion},
		{"the fourth flag", change(0, 0x18), ErrUDPFlags},
		{"feedback without its flag", change(11, 1), ErrUDPFlags},
		{"a MAC", change(0, 0x11), ErrUDPSealed},
		{"IPv5 inside", change(UDPOverhead, 0x55), ErrVersion},
		{"an inner header of 16 bytes", change(UDPOverhead, 0x44), ErrIHL},
		{"a longer packet", change(UDPOverhead+3, 29), ErrTruncated},
		{"a shorter packet", change(UDPOverhead+3, 27), ErrUDPTrailing},
		{"half of an IPv6 header", plain(plainHeader, inner6(0)[:39]), ErrTruncated},
		{"half of an IPv6 packet", plain(plainHeader, inner6(9)[:48]), ErrTruncated},
		{"bytes behind an IPv6 packet", plain(plainHeader, append(inner6(9), 0)), ErrUDPTrailing},
	} {
		if h, inner, err := ParseUDP(c.b); err != c.want || inner != nil || h != (UDPHeader{}) {
			t.Errorf("%s: %+v %x, %v; want %v and nothing else", c.name, h, inner, err, c.want)
		}
	}
}

func FuzzParseUDP(f *testing.F) {
	f.Add(plain(plainHeader, unhex(goldenInner)))
	f.Add(plain(feedbackHeader, inner6(8)))
	f.Add(sealed(f, newSealer(f, 1), plainHeader, inner6(8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		h, inner, err := ParseUDP(b)
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
		if err != nil {
			if inner != nil {
				t.Fatalf("%v, but %x", err, inner)
			}
			return
		}
		// What is accepted has one encoding: its own.
		if again := plain(h, inner); !bytes.Equal(again, b) {
			t.Fatalf("%x reads as %+v, which is %x", b, h, again)
		}
		_ = CheckZeroChecksum(h, inner)
	})
}

func TestUDPPlain_allocatesNothing(t *testing.T) {
	b := plain(feedbackHeader, inner6(1400))
	if n := testing.AllocsPerRun(100, func() {
		PutUDP(b, feedbackHeader)
		if _, _, err := ParseUDP(b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUDP_plain(b *testing.B) {
	p := plain(plainHeader, inner6(1420))
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		PutUDP(p, plainHeader)
		if _, _, err := ParseUDP(p); err != nil {
			b.Fatal(err)
		}
	}
}
