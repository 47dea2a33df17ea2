package tap

import (
	"sync"
	"testing"

	"weft/internal/capture"
)

// A Tap is off while nobody captures, gives each what it asks for, and counts what finds no
// room.
func TestTap(t *testing.T) {
	if (*Tap)(nil).On() {
		t.Error("a nil Tap is on")
	}
	var tap Tap
	if tap.On() {
		t.Error("on without subscribers")
	}
	a, b := tap.Subscribe(2, 100), tap.Subscribe(4, 1)
	if !tap.On() || tap.Snap() != 4 {
		t.Errorf("on %t, snap %d", tap.On(), tap.Snap())
	}
	var adding sync.WaitGroup
	for range 5 {
		adding.Go(func() {
			for range 10 {
				tap.Add(capture.Record{Bytes: []byte{1, 2, 3, 4}, Length: 4})
			}
		})
	}
	adding.Wait()
	a.Close()
	b.Close()
	n := 0
	for r := range a.Records() {
		a.Took(&r)
		n++
		if len(r.Bytes) != 2 {
			t.Errorf("%d bytes", len(r.Bytes))
		}
	}
	m := 0
	for r := range b.Records() {
		m++
		if len(r.Bytes) != 4 {
			t.Errorf("%d bytes", len(r.Bytes))
		}
	}
	if n != 50 || a.Dropped() != 0 || m != 1 || b.Dropped() != 49 || tap.On() {
		t.Errorf("%d and %d packets, %d and %d dropped, on %t", n, m, a.Dropped(), b.Dropped(), tap.On())
	}
}

// What waits is bounded in bytes, too, and what is taken makes room.
func TestTap_bytes(t *testing.T) {
	var tap Tap
	s := tap.Subscribe(0, 1<<16)
	defer s.Close()
	const size = 1 << 16
	for range maxWaiting/size + 10 {
		tap.Add(capture.Record{Bytes: make([]byte, size), Length: size})
	}
	if s.Dropped() != 10 || len(s.Records()) != maxWaiting/size {
		t.Errorf("%d wait, %d dropped", len(s.Records()), s.Dropped())
	}
	r := <-s.Records()
	s.Took(&r)
	if tap.Add(capture.Record{Bytes: make([]byte, size), Length: size}); s.Dropped() != 10 {
		t.Error("what was taken makes no room")
	}
}
