package liveness

import "time"

// stalls keeps running time: the caller's clock less the time while this process was not
// run, because it was stopped, the machine was busy or suspended, or the process waited
// for something else. Other hosts went on meanwhile: their packets wait to be read, and
// this host's probes were not sent. So such a time ends no timeout, lengthens no silence
// and makes no probe due.
//
// A call that comes much later than something was due shows such a time. When the process
// last ran is not known, except that it ran at the latest call. So running time continues
// from there, and the packets that have come in are read before any answer counts as
// missing. On a machine so busy that every call is late, running time continues from the
// time when the first thing was due that has been put off before. So however late calls
// are, every second call does what is due, and dead paths are found.
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

// Away says that this process may not have run between the latest call and now, though
// nothing was due: for example while it sent probes, which should take no time. If more
// than a quarter of Config.Interval has passed, that time is left out.
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
