package liveness

import "time"

// stalls is when this process was not run: it was stopped, or the machine was busy or
// suspended. What was missed meanwhile may wait to be read.
type stalls struct {
	begun  bool          // there has been a Tick
	latest time.Duration // the end of the latest
}

// stallAfter is how late a Tick is that comes after a stall, and 5 Intervals.
const stallAfter = 100 * time.Millisecond

// noticeStall looks whether this Tick comes far too late. If so, the silence so far
// does not count, and what is awaited has a moment more to be read. At the beginning
// nothing is late.
func (w *Watcher) noticeStall() {
	begun := w.stalls.begun
	w.stalls.begun = true
	due := min(w.schedule.Next(), w.awaited.late.Next())
	if !begun || due == never || w.now-due < max(stallAfter, 5*w.config.Interval) {
		return
	}
	w.stalls.latest = w.now
	w.stats.Stalls++
	w.stats.Stalled += w.now - due
	w.near.silent = 0
	for _, g := range w.order {
		g.silent = 0
	}
	for i := range w.proof.bounces {
		w.proof.bounces[i].missed = 0
	}
	for i := range w.awaited.ring {
		if e := &w.awaited.ring[i]; e.place != nowhere && !e.graced {
			e.graced = true
			w.awaited.late.Set(int32(i), e.place, max(w.awaited.late.Due(e.place), w.now+w.config.Interval))
		}
	}
}
