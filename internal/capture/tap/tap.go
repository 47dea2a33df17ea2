// Package tap is where the data path shows its packets to whoever captures them. While nobody
// does, it costs a look at a flag for each batch.
package tap

import (
	"slices"
	"sync"
	"sync/atomic"

	"weft/internal/capture"
)

// Names of the interfaces of what a Tap shows.
const (
	Sent      = "weft-sent"
	Arrived   = "weft-arrived"
	Delivered = "weft-delivered"
)

// Tap hands packets to subscribers. It is safe for concurrent use. A nil Tap is off.
type Tap struct {
	on   atomic.Bool
	snap atomic.Int64 // the most that a subscriber wants

	mu   sync.Mutex
	subs []*Subscription
}

// Subscription is one who captures.
type Subscription struct {
	tap     *Tap
	snap    int
	records chan capture.Record
	bytes   atomic.Int64 // of what waits
	dropped atomic.Uint64
}

// maxWaiting bounds what waits for a subscriber, in bytes.
const maxWaiting = 32 << 20

// DefaultSnap is how much of a packet is kept if a subscriber does not say: 64 KB.
const DefaultSnap = 1 << 16

// Subscribe returns a subscription of the first snap bytes of each packet (0: DefaultSnap). Of
// what is not read at once it keeps room packets, of 32 MB in all, and drops others.
func (t *Tap) Subscribe(snap, room int) *Subscription {
	if snap <= 0 {
		snap = DefaultSnap
	}
	s := &Subscription{tap: t, snap: min(snap, DefaultSnap), records: make(chan capture.Record, max(room, 1))}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs = append(t.subs, s)
	t.adjust()
	return s
}

// adjust sets what follows from who subscribes.
func (t *Tap) adjust() {
	var snap int64
	for _, s := range t.subs {
		snap = max(snap, int64(s.snap))
	}
	t.snap.Store(snap)
	t.on.Store(len(t.subs) > 0)
}

// Records are the packets, until the subscription is closed. Their Bytes are the receiver's, and
// must not be changed: other subscribers have them, too. Tell Took of each that is taken.
func (s *Subscription) Records() <-chan capture.Record { return s.records }

// Took makes room for other packets in place of one that was taken from Records.
func (s *Subscription) Took(r *capture.Record) { s.bytes.Add(-int64(len(r.Bytes))) }

// Dropped is how many packets found no room.
func (s *Subscription) Dropped() uint64 { return s.dropped.Load() }

// Close ends the subscription, and closes Records. It may be called once.
func (s *Subscription) Close() {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.tap.subs = slices.DeleteFunc(s.tap.subs, func(o *Subscription) bool { return o == s })
	s.tap.adjust()
	close(s.records)
}

// On reports whether anybody captures.
func (t *Tap) On() bool { return t != nil && t.on.Load() }

// Snap is how much of a packet is wanted, in bytes.
func (t *Tap) Snap() int { return int(t.snap.Load()) }

// Add shows a packet, whose Bytes are the subscribers' from now on.
func (t *Tap) Add(r capture.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.subs {
		q := r
		q.Bytes = q.Bytes[:min(len(q.Bytes), s.snap)]
		if s.bytes.Load()+int64(len(q.Bytes)) > maxWaiting {
			s.dropped.Add(1)
			continue
		}
		s.bytes.Add(int64(len(q.Bytes)))
		select {
		case s.records <- q:
		default:
			s.Took(&q)
			s.dropped.Add(1)
		}
	}
}
