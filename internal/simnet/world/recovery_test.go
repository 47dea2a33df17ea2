package world

import (
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/stack"
)

// loseNext has the next packet with data lost on its way to e0.1, whatever path it
// takes, and nothing after it.
func loseNext(w *World) {
	const tick = 200 * time.Nanosecond // less than a packet takes on a link
	impair := func(i simnet.Impairment) {
		for _, s := range spines {
			w.Impair(s, "e0.1", i)
		}
	}
	impair(simnet.Impairment{Loss: 1, LossAbove: 200})
	before := w.Network().Stats().Dropped[simnet.Lost]
	var look func()
	look = func() {
		if w.Network().Stats().Dropped[simnet.Lost] > before {
			impair(simnet.Impairment{})
			return
		}
		w.At(w.Now()+tick, look)
	}
	look()
}

// A connection whose SYN was lost has measured no round trip, and if it then loses its
// first segment, none when it leaves recovery either. CUBIC divided by that.
func TestRun_lossBeforeARoundTripIsKnown(t *testing.T) {
	for _, rack := range []bool{false, true} {
		w := newWorld(t, Config{Seed: 1, Hosts: func(_ string, c *stack.Config) { c.TCP.RACK, c.Policy = rack, "ecmp" }})
		w.Fail("e0.1")
		w.At(999*time.Millisecond, func() { // the SYN comes again after a second
			w.Heal("e0.1")
			loseNext(w)
		})
		f := w.Flow("h0.0.2", "h0.1.2", 1<<20)
		if err := w.RunUntil(3 * time.Second); err != nil {
			t.Fatal(err)
		}
		t.Logf("RACK %v: %d bytes, ended at %v", rack, f.Received, f.End)
		if f.End == 0 {
			t.Errorf("RACK %v: has %d of %d bytes and hangs", rack, f.Received, f.Bytes)
		}
	}
}
