package sim

import (
	"testing"
	"time"
)

// Where each second packet is acknowledged, half as many acknowledgements bring the same data.
func TestAckEvery_halvesAcknowledgements(t *testing.T) {
	measure := func(every int) (float64, *Result) {
		c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "drb")
		c.TCP.WindowBytes, c.TCP.AckEvery = 64<<10, every
		c.Workload = permutation(c.Topology, 1, 0)
		r := run(t, c)
		return goodput(c, r), r
	}
	each, all := measure(1)
	second, half := measure(2)
	if all.AckPackets < all.DataPackets*9/10 || half.AckPackets > half.DataPackets*6/10 || half.AckPackets < half.DataPackets*4/10 {
		t.Errorf("%d acknowledgements of %d packets, and %d of %d", all.AckPackets, all.DataPackets, half.AckPackets, half.DataPackets)
	}
	if half.Timeouts > 0 || half.Retransmits > 0 || second < .95*each {
		t.Errorf("each second packet acknowledged: %.0f Mbit/s for %.0f, %d timeouts, %d sent again", second/1e6, each/1e6, half.Timeouts, half.Retransmits)
	}
}

// Flows of any length end without a timeout, though an odd packet is their last, and also
// where packets are lost.
func TestAckEvery_flowsEnd(t *testing.T) {
	for _, bytes := range []int64{1, 1460, 2920, 4380, 100_000, 1_000_001} {
		c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "drb")
		c.Duration, c.Warmup, c.TCP.AckEvery = time.Second, 0, 2
		c.Workload = permutation(c.Topology, 1, bytes)
		if r := run(t, c); r.Flows != 16 || r.Timeouts > 0 {
			t.Errorf("%d bytes: %d flows of 16 ended, with %d timeouts", bytes, r.Flows, r.Timeouts)
		}
	}
	c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "ecmp")
	c.Duration, c.Warmup, c.TCP.AckEvery, c.Resequencer = time.Minute, 0, 2, nil
	c.Queues = []Queue{{Bytes: 10_000}}
	c.Workload = permutation(c.Topology, 1, 1_000_001)
	if r := run(t, c); r.Flows != 16 || r.Retransmits == 0 {
		t.Errorf("with losses: %d flows of 16 ended, %d packets sent again", r.Flows, r.Retransmits)
	}
}

// Every packet of data that arrives is told, by its flow and in the order of its sending.
func TestOnArrival(t *testing.T) {
	c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "rrb")
	c.Workload, c.Warmup = permutation(c.Topology, 1, 146_000), 0
	seen := make(map[[2]uint32]int)
	c.OnArrival = func(_ time.Duration, flow, sent uint32) { seen[[2]uint32{flow, sent}]++ }
	r := run(t, c)
	if len(seen) != 16*100 || r.DataPackets != 16*100 {
		t.Fatalf("%d packets told of %d, want 1,600", len(seen), r.DataPackets)
	}
	for of, n := range seen {
		if n != 1 || of[1] >= 100 {
			t.Errorf("packet %d of flow %d arrived %d times", of[1], of[0], n)
		}
	}
}
