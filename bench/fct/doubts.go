package fct

import (
	"time"

	"weft/bench/testbed"
)

// lateness is how late a flow may begin before it is told.
const lateness = 50 * time.Millisecond

// doubts notes why the results may be the machine's and not the fabric's.
func (b *bench) doubts() {
	var busy, late, all int
	var latest time.Duration
	for _, runs := range b.runs {
		for _, r := range runs {
			if r.failed != nil {
				continue
			}
			all++
			if r.idle >= 0 && r.idle < testbed.CPUBound {
				busy++
			}
			if r.late > lateness {
				late++
			}
			latest = max(latest, r.late)
		}
	}
	if busy > 0 {
		b.note("in %d of %d runs the processors were idle less than %d %% of the time, so these measure the machine and not the fabric: lower the rate, or stop other programs", busy, all, testbed.CPUBound)
	}
	if late > 0 {
		b.note("in %d of %d runs a flow began more than %v too late, %v at most: the machine is busy; times are from when flows began", late, all, lateness, latest.Round(time.Millisecond))
	}
}
