package papers

import (
	"runtime/debug"
	"time"
)

// meter measures what a run takes of the machine. It sees the whole process, in
// which nothing else should run meanwhile.
type meter struct {
	start time.Time
	cpu   time.Duration
	own   bool // the peak of memory begins at start
}

func startMeter() meter {
	debug.FreeOSMemory() // what was there before is not this run's
	return meter{own: resetPeakMemory(), start: time.Now(), cpu: cpuTime()}
}

// into is of a report that all of the run was for.
func (m meter) into(r *Report) {
	r.WallS = time.Since(m.start).Seconds()
	r.CPUS = (cpuTime() - m.cpu).Seconds()
	r.rate()
	m.peak(r)
}

// peak is of memory alone.
func (m meter) peak(r *Report) {
	r.RSSMB = float64(peakMemory()) / 1e6
	r.PeakOfProcess = !m.own
}
