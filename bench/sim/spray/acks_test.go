package spray

import (
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// acksOf returns the paths of so many acknowledgements, so far apart from a time.
func acksOf(h *Hosts, f *Flow, n int, from, apart time.Duration) (list []int) {
	for i := range n {
		list = append(list, h.Ack(f, from+time.Duration(i)*apart))
	}
	return list
}

// A flow's acknowledgements are one unit however many they are, that of another flow is
// another, and one that is forgotten begins anew.
func TestAck_inUnits(t *testing.T) {
	for _, name := range []string{"rand", "presto", "flowcell-drb", "luopan", "local", "letflow", "conga"} {
		h := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: name, Seed: 1, AckUnits: true})
		var first, again []int
		for n := range 40 {
			var f Flow
			h.Open(&f, 0, 12, tuple(0, 12, n))
			list := acksOf(h, &f, 3000, 0, ackIdle)
			if slices.Min(list) != slices.Max(list) || list[0] < 0 {
				t.Fatalf("%s: a flow's acknowledgements take %s", name, times(list))
			}
			first = append(first, list[0])
			again = append(again, h.Ack(&f, 4000*ackIdle))
		}
		if slices.Min(first) == slices.Max(first) {
			t.Errorf("%s: those of all flows take path %d", name, first[0])
		}
		if name != "conga" && slices.Equal(first, again) { // a flowlet stays unless others are better
			t.Errorf("%s: forgotten flows take the same paths again, %v", name, first)
		}
	}
}

// Units that are packets, and flows, are what they are without AckUnits.
func TestAck_inUnitsOnlyWhatIsCut(t *testing.T) {
	for _, name := range []string{"drb", "rb", "rrb", "ecmp", "drill"} {
		var by [2][]int
		for i, units := range []bool{false, true} {
			h := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: name, Seed: 1, AckUnits: units})
			var f Flow
			h.Open(&f, 0, 12, tuple(0, 12, 1))
			by[i] = acksOf(h, &f, 50, 0, time.Microsecond)
		}
		if !slices.Equal(by[0], by[1]) {
			t.Errorf("%s: %v, and in units %v", name, by[0], by[1])
		}
	}
}

func TestAck_inUnitsLeavesADeadPath(t *testing.T) {
	topo := parse(t, leafSpine)
	h := newHosts(t, HostsConfig{Topology: topo, Policy: "rand", Seed: 1, AckUnits: true})
	var f Flow
	h.Open(&f, 0, 12, tuple(0, 12, 1))
	was := h.Ack(&f, 0)
	sh := shapeOf(topo)
	h.SetTopology(topo.Without(sh.uplink(sh.edgeOf(12)) + topology.LinkID(was)))
	if list := acksOf(h, &f, 20, 0, time.Microsecond); slices.Contains(list, was) || slices.Min(list) != slices.Max(list) {
		t.Errorf("path %d is dead, acknowledgements take %v", was, list)
	}
}
