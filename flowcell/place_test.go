package flowcell

import "testing"

// A number is found again from any reference near it, whatever track and however often the
// numbers have begun again.
func TestPlace(t *testing.T) {
	for _, ref := range []uint32{0, 1, 2047, 4095, 4096, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for d := int32(-2048); d < 2048; d++ {
			at := ref + uint32(d)
			for _, track := range []uint8{0, 7, NoTrack} {
				p := MakePlace(at, track)
				if got := p.After(ref); got != at {
					t.Fatalf("%d from %d: %d", at, ref, got)
				}
				if got, ok := p.Track(); ok && got != track || ok != (at%4096 >= 128) {
					t.Fatalf("track %d of %d: %d, %v", track, at, got, ok)
				}
			}
		}
	}
}

// What counts up in the ID of a super-packet is never taken for another track.
func TestPlace_counted(t *testing.T) {
	for at := range uint32(4096) {
		for n := range Place(maxSuperDatagrams) {
			p := MakePlace(at, 3) + n
			if got := p.After(at); got != at+uint32(n) {
				t.Fatalf("%d behind %d: %d", n, at, got)
			}
			if track, ok := p.Track(); ok && track != 3 {
				t.Fatalf("%d behind %d: track %d", n, at, track)
			}
		}
	}
}
