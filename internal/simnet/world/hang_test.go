package world

import (
	"os"
	"strconv"
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/internal/slowtest"
	"weft/resequencer"
	"weft/stack"
)

// weather is what the paths of a world are like.
type weather struct {
	name       string
	policy     string
	discipline resequencer.Discipline
	loss       float64 // per packet, on every way down; acknowledgements lose as many
	dies       bool    // a path dies for a while, and for a moment all
}

// weathers are all pairs of how packets are spread and how many are lost, each with
// every path alive and with some that die. Sprayed packets of unlike paths come out of
// order, and without a resequencer TCP sees that.
func weathers() []weather {
	var all []weather
	for _, w := range []weather{
		{name: "ecmp", policy: "ecmp", discipline: resequencer.Off},
		{name: "presto", policy: "presto", discipline: resequencer.Presto},
		{name: "drb", policy: "drb", discipline: resequencer.Sequence},
		{name: "drb, not put in order", policy: "drb", discipline: resequencer.Off},
	} {
		for _, w.loss = range []float64{0.001, 0.01, 0.02, 0.05} {
			for _, w.dies = range []bool{false, true} {
				all = append(all, w)
			}
		}
	}
	return all
}

// flowsAWorld is how many connections one world has. Their lengths differ: of the
// shortest all packets are the last ones, which nothing follows that would tell of their
// loss.
const flowsAWorld = 100

var flowLengths = []int64{1, 3_000, 20_000, 100_000, 250_000}

// hangs returns how many connections of a world never end: their last byte is not
// read, or the end of the stream is not.
func (c weather) hangs(t *testing.T, seed uint64, rack bool) (hung int) {
	t.Helper()
	w := newWorld(t, Config{Seed: seed, Hosts: func(_ string, h *stack.Config) {
		h.Policy, h.Resequencer.Discipline, h.TCP.RACK = c.policy, c.discipline, rack
	}})
	defer w.Close()
	impair := func() {
		for i, s := range spines {
			lost := simnet.Impairment{Loss: c.loss, Delay: time.Duration(i) * 10 * time.Microsecond}
			w.Impair(s, "e0.1", lost)
			w.Impair(s, "e0.0", lost)
		}
	}
	impair()
	if c.dies {
		w.At(20*time.Millisecond, func() { w.Cut(spines[1], "e0.1") })
		w.At(25*time.Millisecond, func() { w.SetTopology(w.Topology().Without(w.Link(spines[1], "e0.1"))) })
		w.At(50*time.Millisecond, func() { w.Fail("e0.1") })
		w.At(60*time.Millisecond, func() { w.Heal("e0.1") })
		w.At(70*time.Millisecond, func() { w.Mend(spines[1], "e0.1"); impair(); w.SetTopology(w.Topology()) })
	}
	flows := make([]*Flow, flowsAWorld)
	for i := range flows {
		flows[i] = w.FlowAt(time.Duration(i)*time.Millisecond, "h0.0.2", "h0.1.2", flowLengths[i%len(flowLengths)])
	}
	// Timeouts double: who loses a dozen packets in a row, in five minutes tries again.
	if err := w.RunUntil(5 * time.Minute); err != nil {
		t.Fatalf("%+v, seed %d: %v", c, seed, err)
	}
	for i, f := range flows {
		if f.Closed == 0 {
			hung++
			t.Logf("RACK %v, %+v, seed %d: connection %d has %d of %d bytes, ended at %v", rack, c, seed, i, f.Received, f.Bytes, f.End)
		}
	}
	return hung
}

// Every connection ends, with RACK and without. WEFT_FLOWS says how many are tried each
// way: in an ordinary run a few thousand, by hand 100,000.
func TestRun_nothingHangs(t *testing.T) {
	all := weathers()
	worlds := len(all)
	switch {
	case race:
		worlds = 1
	case slowtest.Small():
		worlds = 4
	}
	if s := os.Getenv("WEFT_FLOWS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("WEFT_FLOWS is %q, must be a number of connections: %v", s, err)
		}
		worlds = max(1, n/flowsAWorld)
	}
	for _, rack := range []bool{false, true} {
		hung := 0
		for i := range worlds {
			// With few worlds: one of every way to spread.
			c := all[(i*len(all)/min(worlds, len(all))+i/len(all))%len(all)]
			hung += c.hangs(t, 1+uint64(i), rack)
		}
		t.Logf("RACK %v: %d of %d connections hang", rack, hung, worlds*flowsAWorld)
		if hung > 0 {
			t.Errorf("RACK %v: %d of %d connections hang", rack, hung, worlds*flowsAWorld)
		}
	}
}
