package dataplane

import (
	"testing"
	"time"
)

// Pieces that each take a path of their own cost no allocation, whatever the policy looks at.
func TestTransmit_allocatesNothing(t *testing.T) {
	for _, name := range []string{"drb", "presto", "reps", "conga", "luopan", "drill"} {
		e := testEgress(t, fatTree, name, func(c *Config) { c.Device = sinkhole{} })
		o := superSegment(45)
		at := time.Duration(0)
		if n := testing.AllocsPerRun(200, func() { at += time.Millisecond; e.transmit(o, at) }); n > 0 {
			t.Errorf("%s: %v allocations for 45 segments", name, n)
		}
		if e.stats.NoPath+e.stats.Malformed > 0 {
			t.Errorf("%s: %+v", name, e.stats)
		}
	}
}
