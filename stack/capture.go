package stack

import (
	"sync"
	"time"

	"weft/internal/capture/tap"
)

// Seen is a packet that a Host shows to who captures it. Package stack/capture writes such
// packets to files that Wireshark opens.
type Seen struct {
	At        time.Time
	Interface string // weft-sent, weft-arrived or weft-delivered
	Bytes     []byte // the packet from its first IP header on, as far as asked for
	Length    int    // of the packet, in bytes
	// Path is the path's number, of a packet that leaves by a Tunnel; otherwise -1: the outer
	// header tells.
	Path int
	// Hold is how long the resequencer had a packet that it has delivered, and Cause why it let
	// the packet go: the value of a resequencer.Cause.
	Hold  time.Duration
	Cause string
}

// Watch shows a Host's packets to who captures them.
type Watch struct {
	in   *tap.Subscription
	once sync.Once
}

// Watch shows the Host's packets until Close: those that it sends, as its device gets them, those
// that arrive, and those that the resequencer lets go. snap is how many bytes of each are kept,
// 0 for up to 64 KB. Of what is not read at once, room packets are kept, of 32 MB in all; others
// are dropped, and counted. Without a Watch the Host looks at a flag for each batch of packets, and no more.
func (h *Host) Watch(snap, room int) *Watch { return &Watch{in: h.tap.Subscribe(snap, room)} }

// Next waits for a packet. ok is false after Close. One goroutine at a time may call it. The
// bytes must not be changed: another Watch may have them, too.
func (w *Watch) Next() (s Seen, ok bool) {
	r, ok := <-w.in.Records()
	if !ok {
		return s, false
	}
	w.in.Took(&r)
	s = Seen{r.At, r.Interface, r.Bytes, r.Length, -1, r.Hold, r.Cause}
	if r.HasPath {
		s.Path = r.Path
	}
	return s, true
}

// Dropped is how many packets found no room.
func (w *Watch) Dropped() uint64 { return w.in.Dropped() }

// Close ends the Watch. It may be called more than once, and by any goroutine.
func (w *Watch) Close() { w.once.Do(w.in.Close) }
