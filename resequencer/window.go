package resequencer

import (
	"time"

	"weft/flowcell"
)

// Anybody can send a segment in the name of a flow, and a host that does not see the flow
// can guess its sequence numbers. If the flow moved on behind such a segment, everything
// that its real sender has sent before would be late and would not be put in order. So a
// segment counts only if it is near: at most as much data is missing before it as the
// flow has lately advanced within a hold. More could not fill the hole in time. Other
// segments are strays. A stray is delivered at once, and the flow stays where it is.
//
// A flow does leap now and then: a burst was lost, or a connection has begun whose SYN
// was not seen. Then strays continue, and near segments stop. So when several strays near
// each other come, and nothing moves the flow between them, the flow leaps to them. In
// the same way a flow returns after forged strays have moved it.
const (
	// leastWindow is always near: some flowcells, as a flow that was slow so far may
	// have on its way after a burst.
	leastWindow = 256 << 10
	// firstWindow is near while the pace of a flow is unknown: as many flowcells as there
	// are paths in a large fabric.
	firstWindow = 4 << 20
	// A packet that is not TCP counts as a byte.
	leastPackets, firstPackets = 256, 4096
	// leaps is how many strays make a flow leap.
	leaps = 4
)

// strays are the last of a flow.
type strays struct {
	n    uint8           // near each other; 0: none
	id   flowcell.Number // of the one that ends at end
	end  uint32          // where the flow goes on if it is there
	next uint32          // the flow's when they came
}

// pace is how fast a flow advances.
type pace struct {
	from  uint32        // where it was
	since time.Duration // at this time
	most  uint32        // bytes within a hold time, the longest, of late; 0: not known yet
}

// maxPace bounds what is measured.
const maxPace = 1 << 30

// begin measures from here on.
func (p *pace) begin(at uint32, now time.Duration) { p.from, p.since = at, now }

// measure takes note that the flow is at a place. A slower pace is believed bit by
// bit: senders pause.
func (p *pace) measure(at uint32, now, hold time.Duration) {
	t := now - p.since
	if t < hold/8 {
		return
	}
	p.most = max(within(at-p.from, t, hold), p.most-p.most/4)
	p.begin(at, now)
}

// within is how many of the bytes of a time there may have been within a hold time:
// in a longer one all.
func within(bytes uint32, t, hold time.Duration) uint32 {
	if t >= hold {
		return min(bytes, maxPace)
	}
	return uint32(min(float64(bytes)*float64(hold)/float64(max(t, 1)), maxPace))
}

// window is how much may be missing before a segment, and how far it may be behind,
// if it counts.
func (b *Buffer[P]) window(f *flow[P], tcp bool) int64 {
	least, w := leastWindow, firstWindow
	if !tcp {
		least, w = leastPackets, firstPackets
	}
	if f.pace.most > 0 {
		w = int(f.pace.most)
	}
	return int64(max(least, min(w, b.config.FlowBytes, maxWindow)))
}

// near reports whether s counts.
func (b *Buffer[P]) near(f *flow[P], s *flowcell.Packet, tcp bool) bool {
	least := uint32(leastPackets)
	if tcp {
		least = leastWindow
	}
	return s.Seq-f.next+least <= 2*least || b.reached(f, s, tcp)
}

// reached reports whether a segment further off counts. So does what fills the hole that
// was declared lost last.
func (b *Buffer[P]) reached(f *flow[P], s *flowcell.Packet, tcp bool) bool {
	d := int64(ahead(s.Seq, f.next))
	switch {
	case d < 0 && f.recovering() && ahead(s.Seq, f.lostFrom) >= 0:
		return true
	case d > 0 && f.held != nil && tcp:
		d = max(0, d-int64(f.held.bytes)) // this is not missing
	case d > 0 && f.held != nil:
		d = max(0, d-int64(f.held.packets))
	}
	w := b.window(f, tcp)
	return -w <= d && d <= w
}

// stray takes a segment that is not near, and returns false if the flow has leapt
// there.
func (b *Buffer[P]) stray(f *flow[P], k *packet[P], tcp bool) bool {
	w := b.window(f, tcp)
	x := &f.strays
	d := int64(ahead(k.seq, x.end))
	if x.n == 0 || x.next != f.next || d < -w || d > w {
		*x = strays{next: f.next, end: k.end, id: k.id + flowcell.Number(k.more)}
	} else if x.n+1 == leaps {
		b.leap(f)
		return false
	} else if d <= 0 {
		x.end, x.id = k.end, k.id+flowcell.Number(k.more)
	}
	x.n++
	return true
}

// leap has a flow go on behind its strays.
func (b *Buffer[P]) leap(f *flow[P]) {
	b.releaseAll(f, &b.stats.Flushed)
	f.next, f.id = f.strays.end, f.strays.id
	f.lostFrom, f.lostTo = f.next, f.next
	f.pace.begin(f.next, b.now)
	f.strays = strays{}
	b.stats.Leaps++
}
