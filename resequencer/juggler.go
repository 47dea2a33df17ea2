package resequencer

import "weft/flowcell"

// mergeBytes is how much of a flow Juggler merges before it hands it up.
const mergeBytes = 64 << 10

// juggle holds everything for a moment, as Juggler does. It delivers data in order when
// there is enough of it, when its flags ask for it, when a hole before some of it was
// filled, or when Config.Merge has passed. It delivers other data when the hole is given
// up. The hole is then loss, and nothing is held until it is filled.
func (b *Buffer[P]) juggle(f *flow[P], k *packet[P], s *flowcell.Packet) {
	d, id := ahead(k.seq, f.next), k.id
	if d < 0 && f.phase == buildUp {
		f.next, d = k.seq, 0
	}
	switch {
	case d < 0:
		b.late(f, k)
		if !f.recovering() {
			f.phase = normal
		}
		more := ahead(k.end, f.next) > 0
		b.deliver(f, k, &b.stats.Retransmission)
		if more {
			b.proceed(f, id)
		}
		return
	case f.phase == recovery && d == 0:
		b.deliver(f, k, &b.stats.InOrder)
		return
	case f.phase == recovery:
		b.deliver(f, k, &b.stats.Loss)
		return
	}
	b.regular(f)
	b.hold(f, k, &s.Flow)
	const urgent = special | flowcell.FlagPSH | flowcell.FlagURG
	if r := f.held.first(); r.start == f.next && (!r.merging || s.Flags&urgent != 0 || r.end-r.start >= mergeBytes) {
		cause := &b.stats.InOrder
		if !r.merging {
			cause = &b.stats.Filled
		}
		f.phase = normal
		b.releaseFirst(f, cause)
	}
	if f.held != nil {
		b.enforce(f)
	}
}
