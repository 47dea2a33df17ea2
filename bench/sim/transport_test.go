package sim

import (
	"testing"
	"time"

	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/resequencer"
	"weft/topology"
)

// dumbbell has four hosts send without end to four others over one link.
func dumbbell(t *testing.T, rates string) Config {
	topo := parse(t, "leaf-spine:leaves=2,spines=1,hosts=4,"+rates)
	flows := new(list)
	for h := range topology.NodeID(4) {
		flows.flows = append(flows.flows, workload.Flow{Src: h, Dst: 4 + h})
	}
	c := drbSetting(topo, "ecmp")
	c.Resequencer, c.Workload = nil, flows
	return c
}

// used is the part of a link that is full of segments of 1,460 bytes.
func used(c Config, r *Result, rateMbit float64) float64 {
	sum := int64(0)
	for _, n := range r.DeliveredBytes {
		sum += n
	}
	return float64(sum) * 8 * 1500 / 1460 / (r.End - c.Warmup).Seconds() / (1e6 * rateMbit)
}

// TestTransport_fillsTheLink with the windows of DRB §5, where several flows lose
// packets at its queue of 128 KB, and where one does not.
func TestTransport_fillsTheLink(t *testing.T) {
	for _, window := range []int{64 << 10, 256 << 10} {
		for _, flows := range []int{1, 4} {
			c := dumbbell(t, "host-rate=1000,fabric-rate=1000")
			c.Duration, c.Warmup = 220*time.Millisecond, 20*time.Millisecond
			c.TCP.WindowBytes = window
			l := c.Workload.(*list)
			l.flows = l.flows[:flows]
			r := run(t, c)
			t.Logf("window %d, %d flows: %.2f %% used, %d drops, %d sent again, %d timeouts",
				window, flows, 100*used(c, r, 1000), r.Places[EdgeUp].Drops, r.Retransmits, r.Timeouts)
			if u := used(c, r, 1000); u < .99 || u > 1.0001 {
				t.Errorf("window %d, %d flows: %.2f %% of the link used", window, flows, 100*u)
			}
			if overflows := flows > 1; overflows != (r.Places[EdgeUp].Drops > 0) {
				t.Errorf("window %d, %d flows: %d drops", window, flows, r.Places[EdgeUp].Drops)
			}
		}
	}
}

// TestTransport_dctcpHoldsTheQueue near its threshold, where TCP fills what there
// is (Luopan §4.4: K = 100 KB, 300 KB of room, 10 Gbit/s).
func TestTransport_dctcpHoldsTheQueue(t *testing.T) {
	const mark, room = 100_000, 300_000
	measure := func(dctcp bool) (mean float64, most int, r *Result) {
		c := dumbbell(t, "host-rate=10000,fabric-rate=10000")
		c.TCP = tcp.Config{DCTCP: dctcp}
		c.Queues = []Queue{{Bytes: room, ECNBytes: mark}}
		n := 0
		c.SampleEvery = 10 * time.Microsecond
		c.OnSample = func(_ time.Duration, v View) {
			queue := 0
			for port := 2 * c.Topology.NumHosts(); port < 2*c.Topology.NumLinks(); port++ {
				queue = max(queue, v.QueueBytes(port))
			}
			mean, most, n = mean+float64(queue), max(most, queue), n+1
		}
		r = run(t, c)
		if u := used(c, r, 10000); u < .99 {
			t.Errorf("DCTCP %v: %.2f %% of the link used", dctcp, 100*u)
		}
		return mean / float64(n), most, r
	}
	mean, most, r := measure(true)
	t.Logf("DCTCP: queue mean %.0f, most %d", mean, most)
	if mean < .7*mark || mean > 1.1*mark || most > 1.2*mark || r.Places[EdgeUp].Drops > 0 {
		t.Errorf("DCTCP: queue mean %.0f, most %d, %d drops, threshold %d", mean, most, r.Places[EdgeUp].Drops, mark)
	}
	mean, most, r = measure(false)
	t.Logf("TCP: queue mean %.0f, most %d", mean, most)
	if mean < 1.5*mark || most < room-1500 || r.Places[EdgeUp].Drops == 0 {
		t.Errorf("TCP: queue mean %.0f, most %d, %d drops; expected to fill %d", mean, most, r.Places[EdgeUp].Drops, room)
	}
}

// TestTransport_recoversFromIncast of 20 times 50 KB into a queue of 100 KB, and
// the sooner the less the timeout is (Luopan §4.5).
func TestTransport_recoversFromIncast(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=3,spines=2,hosts=10,host-rate=10000,fabric-rate=40000")
	ideal := time.Duration(20 * 35 * 1200) // 35 segments each
	last := map[time.Duration]time.Duration{}
	for _, dctcp := range []bool{false, true} {
		for _, rto := range []time.Duration{200 * time.Microsecond, 10 * time.Millisecond} {
			l := new(list)
			for h := range topology.NodeID(20) {
				l.flows = append(l.flows, workload.Flow{Src: 10 + h, Dst: 0, Bytes: 50_000})
			}
			c := Config{
				Topology: topo, Seed: 1, Policy: "ecmp", Duration: time.Second, Delay: time.Microsecond,
				Queues: []Queue{{Bytes: 100_000, ECNBytes: 30_000}},
				TCP:    tcp.Config{DCTCP: dctcp, RTOMin: rto}, Workload: l,
			}
			var end time.Duration
			c.OnFlow = func(f FlowEnd) { end = max(end, f.Start+f.FCT) }
			r := run(t, c)
			t.Logf("DCTCP %v, RTO %v: all there after %v (ideal %v), %d drops, %d sent again, %d timeouts",
				dctcp, rto, end, ideal, r.Places[EdgeDown].Drops, r.Retransmits, r.Timeouts)
			if r.Flows != 20 || r.DeliveredBytes[0] != 20*50_000 {
				t.Errorf("DCTCP %v, RTO %v: %d flows ended, %d bytes", dctcp, rto, r.Flows, r.DeliveredBytes[0])
			}
			if r.Retransmits != r.Places[EdgeDown].Drops {
				t.Errorf("DCTCP %v, RTO %v: %d sent again of %d dropped", dctcp, rto, r.Retransmits, r.Places[EdgeDown].Drops)
			}
			if r.Timeouts == 0 || end < ideal {
				t.Errorf("DCTCP %v, RTO %v: %d timeouts, end at %v: no incast", dctcp, rto, r.Timeouts, end)
			}
			last[rto] = end
		}
		if short, long := last[200*time.Microsecond], last[10*time.Millisecond]; long < 10*time.Millisecond || short > long/4 {
			t.Errorf("DCTCP %v: all there after %v with a short timeout, %v with a long one", dctcp, short, long)
		}
	}
}

// TestTransport_reorderingHurts what sprays packets, unless they are put back in
// order (DRB §6.2, Fig. 10).
func TestTransport_reorderingHurts(t *testing.T) {
	topo := parse(t, "fat-tree:k=6,host-rate=1000,fabric-rate=1000,core-rate=1000")
	measure := func(b *resequencer.Config) (rate float64, dupAcks uint32, r *Result) {
		c := drbSetting(topo, "rb")
		c.Resequencer, c.Warmup, c.Duration = b, 0, time.Second
		c.TCP.WindowBytes = 64 << 10
		c.Workload = permutation(topo, 5, 1_000_000)
		var sum time.Duration
		c.OnFlow = func(f FlowEnd) { dupAcks += f.DupAcks; sum += f.FCT }
		r = run(t, c)
		return 8e6 / (sum / 54).Seconds(), dupAcks, r
	}
	with, dups, r := measure(drbSetting(topo, "rb").Resequencer)
	t.Logf("with: %.0f Mbit/s, %d duplicate ACKs, %d sent again, %d timeouts", with/1e6, dups, r.Retransmits, r.Timeouts)
	if dups > 0 || r.Retransmits > 0 || r.Flows != 54 {
		t.Errorf("in order, and yet %d duplicate acknowledgements, %d sent again, %d flows", dups, r.Retransmits, r.Flows)
	}
	without, dups, r := measure(nil)
	t.Logf("without: %.0f Mbit/s, %d duplicate ACKs, %d sent again, %d timeouts", without/1e6, dups, r.Retransmits, r.Timeouts)
	if dups == 0 || r.Retransmits == 0 || r.Flows != 54 || without > .9*with {
		t.Errorf("out of order %.0f Mbit/s, in order %.0f; %d duplicate acknowledgements, %d sent again, %d flows",
			without/1e6, with/1e6, dups, r.Retransmits, r.Flows)
	}
}
