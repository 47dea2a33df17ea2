package dataplane

import (
	"testing"
	"time"

	"weft/policy"
)

// Choosing by samples or marks costs no allocation, and neither do probes.
func TestSampler_allocatesNothing(t *testing.T) {
	clock := &stillClock{}
	e, err := NewEgress(Config{Address: addrA, Topology: fatTree, Device: swallower{}, Policy: "luopan", Samples: true,
		PolicyOptions: policy.Options{Expiry: 100 * time.Microsecond}, Seed: 1, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	s := e.sample()
	packets := [][]byte{dataPacket(1, 1400)}
	describe := func(b []byte, o *Outgoing) { o.Begin(len(b)); o.Parts = append(o.Parts, b) }
	if n := testing.AllocsPerRun(2000, func() {
		clock.Time += 50 * time.Microsecond
		Send(e, packets, describe)
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if n, _ := e.Stats(); n.Packets != 2001 {
		t.Fatalf("%+v", n)
	}
	before := e.SampleStats().Sent
	if n := testing.AllocsPerRun(200, func() {
		clock.Time = max(clock.Time, s.probes.Next())
		s.tick()
		Send(e, packets, describe) // the rack stays in use
	}); n != 0 || e.SampleStats().Sent < before+201 {
		t.Errorf("%v allocations a round of probes, %d sent", n, e.SampleStats().Sent-before)
	}
}

// swallower is a device that takes everything.
type swallower struct{ Device }

func (swallower) MTU() int                                { return 1500 }
func (swallower) Write(bufs [][]byte, _ int) (int, error) { return len(bufs), nil }
