package liveness

import "time"

const (
	slotTime = 100 * time.Millisecond
	halfTime = 100 // slots of half of Lately's time: 10 s
)

// Lately counts a path's probes and packets, sent and lost, in slots of 100 ms: those of the
// last 10 to 20 s. A packet that was sent again counts as lost.
type Lately struct {
	Sent, Lost float32
	// Squares is the sum of the squares of what was lost in each slot, which tells bursts from
	// losses one by one. Slots is how many there were.
	Squares, Slots float32
}

// plus returns the sum of what two stretches of time have told of a path.
func (t Lately) plus(o Lately) Lately {
	return Lately{t.Sent + o.Sent, t.Lost + o.Lost, t.Squares + o.Squares, t.Slots + o.Slots}
}

// evidence is the Lately of a path in the making. It counts lazily: a path that nobody uses
// costs nothing.
type evidence struct {
	slot int32   // the latest one
	lost float32 // in it
	// newer began with the latest multiple of halfTime; older is the half before it.
	older, newer Lately
}

// add counts packets sent, and lost, at a time.
func (t *evidence) add(now time.Duration, sent, lost int) {
	t.roll(now)
	t.newer.Sent += float32(sent)
	t.lost += float32(lost)
}

func (t *evidence) roll(now time.Duration) {
	slot := int32(now / slotTime)
	if slot <= t.slot {
		return
	}
	t.close()
	end := (t.slot/halfTime + 1) * halfTime // of the half
	if slot >= end {
		t.newer.Slots += float32(end - t.slot)
		t.older, t.newer = t.newer, Lately{}
		if t.slot = end; slot >= end+halfTime {
			t.older, t.slot = Lately{Slots: halfTime}, slot/halfTime*halfTime
		}
	}
	t.newer.Slots += float32(slot - t.slot)
	t.slot = slot
}

// close adds the latest slot's losses to the half.
func (t *evidence) close() {
	t.newer.Lost += t.lost
	t.newer.Squares += t.lost * t.lost
	t.lost = 0
}

// sum returns what is counted.
func (t *evidence) sum(now time.Duration) Lately {
	t.roll(now)
	u := *t
	u.close()
	u.newer.Slots++ // the latest
	return u.older.plus(u.newer)
}
