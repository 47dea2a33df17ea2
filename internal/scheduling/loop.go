package scheduling

import (
	"time"

	"weft/internal/elephant"
)

// loopsKept bounds the times that loopTimes has.
const loopsKept = 64

// loopTimes are how long the control loop takes (thesis §4.4.4, Table 4.7): from a flow's first
// report until its placement is in force in the program. A flow that comes back while its pin is
// in force waits for none.
type loopTimes struct {
	waiting map[elephant.Flow]time.Duration // reported and not pinned yet: since when
	pinned  map[elephant.Flow]bool          // of the reported ones
	count   uint64
	last    []time.Duration // at most loopsKept, the latest last
}

// report notes what is reported, among it flows that hold a pin. Flows that are not reported any
// more are forgotten.
func (l *loopTimes) report(now time.Duration, list []elephant.Rate, holds func(elephant.Flow) bool) {
	waiting, pinned := make(map[elephant.Flow]time.Duration), make(map[elephant.Flow]bool)
	for _, e := range list {
		since, waits := l.waiting[e.Flow]
		switch {
		case l.pinned[e.Flow]:
			pinned[e.Flow] = true
		case waits: // also if it has got a pin that the program does not know yet
			waiting[e.Flow] = since
		case holds(e.Flow):
			pinned[e.Flow] = true
		default:
			waiting[e.Flow] = now
		}
	}
	l.waiting, l.pinned = waiting, pinned
}

// inForce notes what the program obeys.
func (l *loopTimes) inForce(now time.Duration, pins []elephant.Pin) {
	for _, p := range pins {
		since, ok := l.waiting[p.Flow]
		if !ok {
			continue
		}
		delete(l.waiting, p.Flow)
		l.pinned[p.Flow] = true
		l.count++
		if l.last = append(l.last, now-since); len(l.last) > loopsKept {
			l.last = l.last[1:]
		}
	}
}

// milliseconds are the times that are kept.
func (l *loopTimes) milliseconds() []float64 {
	list := make([]float64, len(l.last))
	for i, d := range l.last {
		list[i] = float64(d.Round(time.Microsecond).Microseconds()) / 1e3
	}
	return list
}
