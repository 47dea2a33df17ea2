package liveness

import "time"

// A Watcher lives in running time: what its caller's clock has counted less the time
// for which this process was not run, because it was stopped, the machine was busy or
// suspended, or it waited for something else. Nobody else stood still meanwhile, but
// what they sent waits to be read, and what was to be sent was not. So such a time ends
// no timeout, makes no silence longer and no probe due; all goes on as if it had not been.
//
// It shows in a call that comes much later than something was due. When the process was
// run last is not known; it was at the latest call. So time goes on from there: what
// has come in is read before anything is found missing. Where a machine is so busy that
// every call is late, it goes on from when the first thing was due that has been put off
// already. So however late calls are, every second one gets on with what is due, and who
// is dead is found out.
type stalls struct {
	begun bool          // there has been a Tick
	away  time.Duration // in all: the caller's clock less running time
	due   time.Duration // until when things that are due have been put off once
}

// late is how much later a call comes than something was due, if the process was not
// run: as long as the shortest timeout.
func (c *Config) late() time.Duration { return c.minTimeout() }

// at takes note of the time of the caller's clock, which never goes back.
func (w *Watcher) at(now time.Duration) {
	now -= w.stalls.away
	due := min(w.schedule.Next(), w.awaited.late.Next())
	if w.stalls.begun && due != never && now-due > w.config.late() {
		from := w.now
		if due <= w.stalls.due {
			from = max(from, due)
		}
		w.stalls.due = max(w.stalls.due, due)
		w.leaveOut(now - from)
		now = from
	}
	w.now = max(w.now, now)
}

// leaveOut takes out a time for which this process was not run.
func (w *Watcher) leaveOut(d time.Duration) {
	w.stalls.away += d
	w.stats.Stalls++
	w.stats.Stalled += d
}

// Away says that this process may not have been run between the latest call and now,
// though nothing was due: it has sent probes, say, and is to have done so at once. If
// that took longer than a quarter of Config.Interval, the time is left out.
func (w *Watcher) Away(now time.Duration) {
	if d := now - w.stalls.away - w.now; w.stalls.begun && d > w.config.late() {
		w.leaveOut(d)
	}
}

// clock translates running time into the caller's.
func (w *Watcher) clock(t time.Duration) time.Duration {
	if t == never {
		return never
	}
	return t + w.stalls.away
}
