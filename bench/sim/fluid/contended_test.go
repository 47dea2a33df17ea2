package fluid

import (
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// Two flows to one host, and one that meets nobody: only the two are slower.
func TestRun_contended(t *testing.T) {
	top, err := topology.Parse("leaf-spine:leaves=1,spines=1,hosts=6,host-rate=1000,fabric-rate=1000")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(top)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[float64][3]time.Duration{
		0:   {2 * time.Second, 2 * time.Second, time.Second},
		1:   {2 * time.Second, 2 * time.Second, time.Second},
		.25: {8 * time.Second, 8 * time.Second, time.Second},
	} {
		l := &list{ended: make([]time.Duration, 3)}
		for i, dst := range []topology.NodeID{5, 5, 4} {
			l.flows = append(l.flows, workload.Flow{Src: topology.NodeID(i), Dst: dst, Bytes: 125_000_000, Job: uint32(i)})
		}
		if _, err := Run(Config{Fabric: f, Workload: l, Scheduler: NonBlocking, Duration: time.Minute, Contended: part}); err != nil {
			t.Fatal(err)
		}
		for i, at := range l.ended {
			if d := at - want[i]; d < -time.Microsecond || d > time.Microsecond {
				t.Errorf("%g of a port: flow %d ends at %v, want %v", part, i, at, want[i])
			}
		}
	}
	if _, err := Run(Config{Fabric: f, Workload: &list{}, Scheduler: NonBlocking, Duration: 1, Contended: 2}); err == nil {
		t.Error("twice a port: no error")
	}
}

// A port that one flow fills and others pass without filling it is not contended, and one at
// which a flow takes what another leaves is.
func TestNetwork_contendedPorts(t *testing.T) {
	n := newNetwork([]float64{100, 1000, 950})
	slow := n.add(routeOf(0, 1)) // held by port 0
	fast := n.add(routeOf(2, 1)) // by port 2 or 1
	n.settle()
	if r := n.contended(.5); r[slow] != 100 || r[fast] != 400 {
		t.Errorf("%v, want 100 and what is left of 500", r)
	}
	n.remove(slow)
	n.settle()
	if r := n.contended(.5); r[fast] != 950 {
		t.Errorf("alone: %v, want 950", r[fast])
	}
}
