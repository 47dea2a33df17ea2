package spray

import (
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// A flowlet ends with a pause of two gaps at the latest, and of one at the soonest
// (CONGA §3.4).
func TestLeaves_flowlets(t *testing.T) {
	const gap = 500 * time.Microsecond
	for _, c := range []struct {
		pause time.Duration
		moves bool
	}{{gap - 1, false}, {2 * gap, true}} {
		s := newSwitch(t, SwitchConfig{Topology: parse(t, leafSpine), Name: switchConga, Seed: 3}, queues{})
		now, used := time.Duration(0), map[int]bool{}
		for range 60 {
			// The port just taken is busy, so a new flowlet would take another.
			port := ups(s, 7, 1, now, 0)[0]
			used[port] = true
			s.(*leaves).tables[0].Feedback(19, portTag(port), 7, now+c.pause)
			now += c.pause
		}
		if moved := len(used) > 1; moved != c.moves {
			t.Errorf("after pauses of %v a flow takes %v", c.pause, used)
		}
	}
}

// The whole loop: the mark goes up with the busiest link on the way, the destination's
// leaf remembers it and reports it in the next packet back.
func TestLeaves_feedback(t *testing.T) {
	topo := parse(t, leafSpine)
	s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchConga, Seed: 3}, queues{})
	sh := shapeOf(topo)
	if !s.Marks() {
		t.Fatal("no marks")
	}
	// carry sends a packet the whole way, and returns the port that it took.
	carry := func(src, dst topology.NodeID, hash uint64, now time.Duration) (int, Mark) {
		p := Packet{Src: src, Dst: dst, Hash: hash, Bytes: 1500}
		port := s.Up(sh.edgeOf(src), 2*int32(src), &p, now)
		s.Pass(upPort(sh.uplink(sh.edgeOf(src))+topology.LinkID(port)), &p, now)
		s.Pass(upPort(sh.uplink(sh.edgeOf(dst))+topology.LinkID(port))+1, &p, now)
		m := p.Mark
		s.Pass(2*int32(dst)+1, &p, now)
		return port, m
	}
	// Others keep the link from spine 2 to the last leaf busy: 1,500 bytes in 1.2 µs.
	busy := func(until time.Duration, from time.Duration) {
		for now := from; now < until; now += 1200 {
			s.Pass(upPort(sh.uplink(19)+2)+1, &Packet{Src: 4, Dst: 12, Bytes: 1500}, now)
		}
	}
	var ports []int
	for i := range 200 {
		now := time.Duration(i+1) * ms
		busy(now, now-ms)
		port, m := carry(0, 12, uint64(i), now)
		if !m.Forward || m.Tag != portTag(port) || (port == 2) != (m.CE >= 6) {
			t.Fatalf("by port %d: mark %+v", port, m)
		}
		_, back := carry(12, 0, 1, now+10)
		if !back.Feedback || back.FbTag != m.Tag || back.FbMetric != m.CE {
			t.Fatalf("%+v is reported as %+v", m, back)
		}
		ports = append(ports, port)
	}
	n := 0
	for _, p := range ports[20:] {
		if p == 2 {
			n++
		}
	}
	if n > 20 { // aged metrics let it be tried again
		t.Errorf("%d of 180 flows take the busy path", n)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(ports)))) != 4 {
		t.Errorf("ports %v", times(ports))
	}
}

// A port that is half as fast counts as twice as busy for the same bytes.
func TestLeaves_slowerPortsAreBusier(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=10000,fabric-rate=20000,e0.0-a0.1=10000")
	s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchConga, Seed: 3}, queues{})
	counts := [2]int{}
	for i := range 4000 {
		// 20 Gbit/s of flows of one packet; the two ports have 30 together.
		p := Packet{Src: 0, Dst: 2, Hash: mix(5, uint64(i)), Bytes: 1500}
		counts[s.Up(4, 0, &p, time.Duration(i)*600)]++
	}
	if share := float64(counts[0]) / 4000; share < .62 || share > .72 {
		t.Errorf("%v: the faster port has %.2f, want two thirds", counts, share)
	}
}
