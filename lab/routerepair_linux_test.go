package lab

import (
	"net"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// setAll gives every switch its routes for what is left of the fabric, as an
// agent on each would.
func setAll(t *testing.T, all map[topology.NodeID]*fabric.Routes, top *topology.Topology) {
	t.Helper()
	for id, r := range all {
		p, err := fabric.Plan(top, id, fabric.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Set(p); err != nil {
			t.Fatal(err)
		}
	}
}

// Thesis §3.1.8: of what is not encapsulated, nothing goes to where a link is
// missing further on, once the switches know: neither up to an aggregation
// switch without a link to the rack, nor to a core without one to the pod.
func TestRoutes_repairWhatIsNotEncapsulated(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	top := l.Config.Topology
	all := make(map[topology.NodeID]*fabric.Routes)
	for n := range top.Nodes() {
		if n.Layer == topology.LayerHost {
			continue
		}
		plan, err := fabric.Plan(top, n.ID, fabric.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = l.Do(n.ID, func() (err error) {
			all[n.ID], err = fabric.OpenRoutes(plan)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(all[n.ID].Close)
	}
	hosts := kerneltest.Hosts(top)
	to := hosts[len(hosts)-1] // h3.1.3
	for _, target := range []string{"e3.1-a3.2", "a3.2-3.0", "3.1", "a3.3"} {
		mustFail(t, l, target, FailSilent) // nobody but us knows
		failed, err := l.Config.target(target)
		if err != nil {
			t.Fatal(err)
		}
		lost := lostFlows(t, l, hosts, to)
		if lost == 0 {
			t.Errorf("%s failed: no flow is lost before the switches know", target)
		}
		setAll(t, all, top.Without(failed.links...))
		if lost := lostFlows(t, l, hosts, to); lost != 0 {
			t.Errorf("%s failed: %d flows are lost when the switches know", target, lost)
		}
		mustHeal(t, l)
		setAll(t, all, top)
	}
	wantAsBuilt(t, l)
}

// lostFlows sends a packet of each of many flows to a host, from one host of
// each rack, and returns how many did not arrive.
func lostFlows(t *testing.T, l *Lab, hosts []topology.Node, to topology.Node) int {
	t.Helper()
	sink := listenUDP(t, l, to)[0]
	defer sink.Close()
	sent := 0
	for i, from := range hosts {
		if i%2 == 1 || from.ID == to.ID {
			continue
		}
		err := l.Do(from.ID, func() error {
			for range 16 {
				c, err := net.DialUDP("udp4", &net.UDPAddr{IP: from.Addr.AsSlice()}, sink.LocalAddr().(*net.UDPAddr))
				if err != nil {
					return err
				}
				c.Write([]byte("x")) // an ICMP error counts as a loss
				c.Close()
				sent++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	arrived := 0
	for b := make([]byte, 8); arrived < sent; arrived++ {
		sink.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, _, err := sink.ReadFrom(b); err != nil {
			break
		}
	}
	return sent - arrived
}
