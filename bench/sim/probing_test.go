package sim

import (
	"testing"

	"weft/bench/sim/spray"
)

// TestProbing_meters sends a probe through queues of known length.
func TestProbing_meters(t *testing.T) {
	for _, racks := range []bool{false, true} {
		topo := parse(t, "fat-tree:k=4"+rates)
		c := drbSetting(topo, "luopan")
		c.Warmup = 0
		c.Spray.RackSamples = racks
		c.Workload = new(list)
		s, err := newSimulation(c)
		if err != nil {
			t.Fatal(err)
		}
		const path = 2
		var route [maxHops]int32
		hops := s.fabric.route(&route, 0, 15, path)
		// Each port is found with so many bytes, on top of what has left when the
		// probe comes: it takes 64 bytes and a Delay to each.
		bytes := []int64{2999, 3000, 0, 1500, 120_000}
		start, step := int64(0), (64*8+5000)*int64(1000)
		if !racks {
			start = step
		}
		for i, port := range route[:hops] {
			at := start + step*int64(i)
			for k := range i { // the probe waits for what it meets
				at += bytes[k] * 8000
			}
			s.ports[port].busy = at + bytes[i]*8000
		}
		p := spray.Probe{Owner: 0, Dst: 15, Path: path}
		want, meters := int32(1+2+0+1+80), int32(5)
		if racks {
			p.Owner, p.Dst = topo.Link(0).B, topo.Link(15).B
			want, meters = 1+2+0+1, 4
		}
		s.sendProbe(p)
		for e, ok := s.wheel.pop(); ok && s.packets.at(e.what).kind == probe; e, ok = s.wheel.pop() {
			if e.way == (way{}) {
				if u := s.probing.out[0]; u.queue != want || u.meters != meters {
					t.Errorf("racks %v: %d units by %d meters, want %d by %d", racks, u.queue, u.meters, want, meters)
				}
			}
			s.happen(&e)
		}
		if s.probePackets != 2 {
			t.Errorf("racks %v: %d packets sent, want a probe and an answer", racks, s.probePackets)
		}
	}
}
