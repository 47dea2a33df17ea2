package fct

import (
	"sync/atomic"
	"time"

	"weft/bench/testbed"
)

// beginnings tells when all flows of a run have begun, those aside that never will.
type beginnings struct {
	left atomic.Int64
	told func() // once
}

func newBeginnings(flows int, told func()) *beginnings {
	b := &beginnings{told: told}
	b.left.Store(int64(flows))
	return b
}

// one is called of each flow, when it has begun or will not.
func (b *beginnings) one() {
	if b.left.Add(-1) == 0 {
		b.told()
	}
}

// leastIdleTime is the shortest time over which idleness is told: the kernel counts processors'
// time in steps of 10 ms.
const leastIdleTime = 200 * time.Millisecond

// idleness is the processors' idle time from a run's beginning until its last flow has begun. The
// time in which the last flows end does not count: it is idle however busy the run was.
type idleness struct {
	begin         time.Time
	before, after testbed.CPU
	ended         bool
}

func newIdleness() *idleness { return &idleness{begin: time.Now(), before: testbed.ReadCPU()} }

// begun is called when all flows have begun.
func (i *idleness) begun() {
	if time.Since(i.begin) >= leastIdleTime {
		i.after, i.ended = testbed.ReadCPU(), true
	}
}

// percent is called at the end of the run. Runs whose flows begin in less than leastIdleTime
// count whole.
func (i *idleness) percent() float64 {
	if !i.ended {
		i.after = testbed.ReadCPU()
	}
	return testbed.IdlePercent(i.before, i.after)
}
