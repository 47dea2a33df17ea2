package dataplane

import (
	"bytes"
	"testing"

	"weft/link"
)

// Packets leave in their order, a batch at a time; those that are not taken are counted.
func TestOutbox(t *testing.T) {
	var written [][]byte
	calls, takes := 0, 100
	b := newOutbox(3, 8, func(bufs [][]byte) int {
		calls++
		for _, p := range bufs[:min(takes, len(bufs))] {
			written = append(written, bytes.Clone(p[link.SuperHeadroom:]))
		}
		return min(takes, len(bufs))
	})
	b.Flush()
	for i := range byte(7) {
		b.Add([]byte{i, i + 1})
	}
	if calls != 2 || len(written) != 6 {
		t.Errorf("%d packets in %d calls before Flush", len(written), calls)
	}
	b.Flush()
	b.Flush()
	if calls != 3 || len(written) != 7 || b.Drops() != 0 {
		t.Errorf("%d packets in %d calls, %d drops", len(written), calls, b.Drops())
	}
	for i, p := range written {
		if !bytes.Equal(p, []byte{byte(i), byte(i) + 1}) {
			t.Errorf("packet %d is %v", i, p)
		}
	}
	takes = 1
	for range 2 {
		b.Add([]byte{9})
	}
	if b.Flush(); b.Drops() != 1 {
		t.Errorf("%d drops, want 1", b.Drops())
	}
	b = newOutbox(3, 8, func(bufs [][]byte) int { return len(bufs) })
	if n := testing.AllocsPerRun(100, func() { b.Add([]byte{1, 2, 3}); b.Flush() }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
