package sim

import (
	"math"
	"testing"
	"time"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s is %.4g, want %.4g within %v %%", what, got, want, tolerance*100)
	}
}

// TestOpenLoop_poisson makes hosts' own ports M/D/1 queues, whose mean wait is
// ρ/2(1-ρ) packets (Pollaczek and Khinchine).
func TestOpenLoop_poisson(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=2,spines=8,hosts=8,host-rate=1000,fabric-rate=1000")
	c := drbSetting(topo, "switch-rr")
	c.Warmup, c.Duration = 50*time.Millisecond, 850*time.Millisecond
	c.OpenLoop = &OpenLoop{Load: 0.8, PacketBytes: 1500}
	r := run(t, c)
	p := r.Places[HostNIC]
	near(t, "mean queue", p.MeanBytes, 3000, 0.03)
	near(t, "mean over time", p.TimeMeanBytes, 3000, 0.03)
	near(t, "mean wait", p.Wait.Mean(), 24_000, 0.03)
	near(t, "load", float64(p.Packets)*12e-6/16/0.8, 0.8, 0.005)
	// Variance of the wait of M/D/1: W² + ρ/3(1-ρ), in services.
	near(t, "variance of the queue", p.VarBytes, (4+0.8/0.6)*1500*1500, 0.08)
}

// TestOpenLoop_slotted is DRB's model of random bouncing: n/2 hosts of a rack choose
// among n/2 uplinks, so the batches of a slot have E[A(A-1)] = ρ²(1-2/n), and what a
// packet finds before it is ρ(1-2/n)/2(1-ρ) on average (Appendix B, Lemma; less
// the packet itself).
func TestOpenLoop_slotted(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=4,spines=8,hosts=8,host-rate=1000,fabric-rate=1000")
	c := drbSetting(topo, "rb")
	c.Queues[0].Bytes = 1 << 20
	c.Warmup, c.Duration = 50*time.Millisecond, 450*time.Millisecond
	c.OpenLoop = &OpenLoop{Load: 0.8, PacketBytes: 1500, Slotted: true}
	for h := range topo.NumHosts() {
		c.OpenLoop.To = append(c.OpenLoop.To, permutationTo(topo.NumHosts(), h))
	}
	r := run(t, c)
	near(t, "mean queue", r.Places[EdgeUp].MeanBytes, 1500*0.8*(1-2./16)/(2*0.2), 0.03)
	if n := r.Places[HostNIC].Wait.Max(); n != 0 {
		t.Errorf("a packet waited %d ns at its host, where slots do not overlap", n)
	}
	near(t, "load", float64(r.Places[HostNIC].Packets)*12e-6/32/0.4, 0.8, 0.005)
}
