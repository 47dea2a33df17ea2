package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/internal/capture"
	"weft/internal/capture/tap"
	"weft/link"
	"weft/resequencer"
)

// peeker is a Sink that shows packets.
type peeker[P any] interface {
	// Peek appends the first bytes of a packet to b, at most n, and returns b and the packet's
	// length. It changes nothing.
	Peek(p P, b []byte, n int) ([]byte, int)
}

// seen is what an ingress shows to a tap: what arrives, and what is delivered, how long that
// was held and why it is delivered. It is used under the ingress's lock, while somebody
// captures.
type seen[P any] struct {
	tap  *tap.Tap
	peek peeker[P] // nil: the sink shows nothing
	base time.Time // when the ingress's clock was 0
	kept map[any]waiting
	why  map[any]resequencer.Cause
}

// waiting is a packet in the resequencer.
type waiting struct {
	since   time.Duration
	passing bool // it is nothing that is put in order
}

// TapTo has the ingress show its packets to t while somebody captures. It must be called before
// Start.
func (in *Ingress[P]) TapTo(t *tap.Tap) { in.tap = t }

// TapTo has the egress show what it sends to t while somebody captures. It must be called
// before the first packet.
func (e *Egress) TapTo(t *tap.Tap) { e.tap = t }

// watch begins to show packets, or ends it, as somebody has begun or ended to capture.
func (in *Ingress[P]) watch(now time.Duration) {
	if in.tap.On() == (in.seen != nil) {
		return
	}
	var observe func(P, resequencer.Cause)
	if in.seen != nil {
		in.seen = nil
	} else {
		s := &seen[P]{tap: in.tap, base: time.Now().Add(-now), kept: make(map[any]waiting), why: make(map[any]resequencer.Cause)}
		s.peek, _ = in.to.(peeker[P])
		in.seen, observe = s, func(p P, why resequencer.Cause) { s.why[p] = why }
	}
	in.reseq.Observe(observe)
	if in.datagrams != nil {
		in.datagrams.Observe(observe)
	}
}

// arrived shows a packet as it was read.
func (s *seen[P]) arrived(a *Arrived, now time.Duration) {
	n := min(len(a.Bytes), s.tap.Snap())
	s.tap.Add(capture.Record{At: s.base.Add(now), Interface: tap.Arrived, Point: capture.PointArrived,
		Bytes: append([]byte(nil), a.Bytes[:n]...), Length: len(a.Bytes)})
}

// keep takes note of what goes to the resequencer.
func (s *seen[P]) keep(p P, pkt *flowcell.Packet, now time.Duration) {
	s.kept[p] = waiting{now, pkt.Payload == 0 && pkt.Flags&(flowcell.FlagSYN|flowcell.FlagFIN) == 0}
}

// delivered shows what the resequencer has let go.
func (s *seen[P]) delivered(ready []P, now time.Duration) {
	for _, p := range ready {
		k, known := s.kept[p]
		why, told := s.why[p]
		delete(s.kept, p)
		delete(s.why, p)
		if s.peek == nil {
			continue
		}
		r := capture.Record{At: s.base.Add(now), Interface: tap.Delivered, Point: capture.PointDelivered}
		r.Bytes, r.Length = s.peek.Peek(p, nil, s.tap.Snap())
		switch {
		case told:
			r.Cause = string(why)
		case known && k.passing:
			r.Cause = string(resequencer.CausePassed)
		case known:
			r.Cause = string(resequencer.CauseInOrder)
		}
		if known { // else it came before the capture began
			r.Hold = now - k.since
		}
		s.tap.Add(r)
	}
}

// show shows packets that are about to leave: they lie behind link.SuperHeadroom.
func (e *Egress) show(bufs [][]byte) {
	if !e.tap.On() {
		return
	}
	at, snap := time.Now(), e.tap.Snap()
	for _, b := range bufs {
		b = b[link.SuperHeadroom:]
		e.tap.Add(capture.Record{At: at, Interface: tap.Sent, Point: capture.PointSent, Out: true,
			Bytes: append([]byte(nil), b[:min(len(b), snap)]...), Length: len(b)})
	}
}

// showParts shows a packet in pieces that is about to leave, and in a tunnel its path.
func (e *Egress) showParts(parts [][]byte, via *pathOut) {
	if !e.tap.On() {
		return
	}
	r := capture.Record{At: time.Now(), Interface: tap.Sent, Point: capture.PointSent, Out: true}
	if via != nil {
		r.HasPath, r.Path = true, via.index
	}
	snap := e.tap.Snap()
	for _, p := range parts {
		r.Length += len(p)
		r.Bytes = append(r.Bytes, p[:min(len(p), max(snap-len(r.Bytes), 0))]...)
	}
	e.tap.Add(r)
}

// Peek is peeker's.
func (w *toKernel) Peek(f *frame, b []byte, n int) ([]byte, int) {
	return append(b, f.b[:min(len(f.b), n)]...), len(f.b)
}
