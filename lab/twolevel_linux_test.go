package lab

import (
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// All flows to a host go by the one path that its host ID determines (thesis §3.1.5). A
// switch's own port that fails loses nothing, without anybody's help; of failures further on
// switches must be told, and then nothing is lost (§3.1.8).
func TestUp_twoLevelTables(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4"), Routing: fabric.RoutingTwoLevel})
	top := l.Config.Topology
	hosts := kerneltest.Hosts(top)
	to := hosts[len(hosts)-1] // h3.1.3
	from := []topology.Node{hosts[0]}
	edge := top.EdgeOf(from[0].ID)
	sent := func() (by [2]uint64) {
		bytes, err := l.PortBytes(edge)
		if err != nil {
			t.Fatal(err)
		}
		return [2]uint64{bytes[2].TxBytes, bytes[3].TxBytes}
	}
	before := sent()
	for range 4 {
		if lost := lostFlows(t, l, from, to); lost != 0 {
			t.Fatalf("%d flows are lost in a whole fabric", lost)
		}
	}
	after := sent()
	// e0.0 sends to host ID 3 by its second port up: (3-2+0) mod 2 = 1.
	if after[0] != before[0] || after[1] == before[1] {
		t.Errorf("64 flows to %s: e0.0 sent %d bytes by p2 and %d by p3, want all by p3", to.Name, after[0]-before[0], after[1]-before[1])
	}
	mustFail(t, l, "e0.0-a0.3", FailLoud)
	deadline := time.Now().Add(20 * time.Second)
	for lost := -1; lost != 0; {
		if lost = lostFlows(t, l, from, to); lost != 0 && time.Now().After(deadline) {
			t.Fatalf("e0.0's port up is down: %d flows are lost", lost)
		}
	}
	mustHeal(t, l)

	all := make(map[topology.NodeID]*fabric.Routes)
	set := func(top *topology.Topology) {
		for n := range top.Nodes() {
			if n.Layer == topology.LayerHost {
				continue
			}
			p, err := fabric.Plan(top, n.ID, fabric.Options{Routing: fabric.RoutingTwoLevel})
			if err != nil {
				t.Fatal(err)
			}
			if all[n.ID] != nil {
				_, err = all[n.ID].Set(p)
			} else {
				err = l.Do(n.ID, func() (err error) {
					all[n.ID], err = fabric.OpenRoutes(p)
					return err
				})
				t.Cleanup(all[n.ID].Close)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	set(top)
	for _, target := range []string{"e3.1-a3.2", "a3.2-3.1", "3.2", "a3.3"} {
		mustFail(t, l, target, FailSilent) // nobody but us knows
		failed, err := l.Config.target(target)
		if err != nil {
			t.Fatal(err)
		}
		if lostFlows(t, l, hosts, to) == 0 {
			t.Errorf("%s failed: no flow is lost before the switches know", target)
		}
		set(top.Without(failed.links...))
		if lost := lostFlows(t, l, hosts, to); lost != 0 {
			t.Errorf("%s failed: %d flows are lost when the switches know", target, lost)
		}
		mustHeal(t, l)
		set(top)
	}
	wantAsBuilt(t, l)
}
