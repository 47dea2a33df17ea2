package liveness

import (
	"slices"
	"strings"
	"testing"

	"weft/encap"
	"weft/topology"
)

// follow walks from a switch out of these ports.
func follow(t *topology.Topology, at topology.NodeID, ports []int) (passed []topology.NodeID) {
	for _, port := range ports {
		at = t.Ports(at)[port].Peer
		passed = append(passed, at)
	}
	return passed
}

func adjacent(t *topology.Topology, a, b topology.NodeID) bool {
	return slices.ContainsFunc(t.Ports(a), func(p topology.Port) bool { return p.Peer == b })
}

// Every probe of every host passes the bouncing switch that it is about, and has its
// labels taken off there, or in VL2 behind it, next to the edge switch of whom it is
// for: its own for a boomerang.
func TestLabels_leadThereAndBack(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=4,hosts=1", "leaf-spine:leaves=3,spines=2,hosts=1", "vl2:d0=2,d1=4,d2=4,hosts=1"} {
		whole, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		boomerangs := 0
		for self := range topology.NodeID(whole.NumHosts()) {
			edge := whole.EdgeOf(self)
			l := Labels{Topology: whole, Self: self}
			for dst := range topology.NodeID(whole.NumHosts()) {
				set := whole.Paths(self, dst)
				for n := range set.Count() {
					if set.Direct() {
						break
					}
					bounce, _ := whole.ByAddr(set.Addr(n))
					for to, kind := range map[topology.NodeID]encap.ProbeKind{dst: encap.ProbeRequest, self: encap.Boomerang} {
						ports, ok := l.Of(&Probe{Via: set.Addr(n), Path: n, Dst: whole.Node(to).Addr, body: encap.Probe{Kind: kind}})
						passed := follow(whole, edge, ports)
						turned := slices.Index(passed, bounce)
						if !ok || turned < 0 || turned != len(set.Bases)-1 || len(passed)-1 > turned && !(strings.HasPrefix(spec, "vl2") &&
							len(passed)-2 == turned && adjacent(whole, passed[turned+1], whole.EdgeOf(to))) {
							t.Fatalf("%s: %s to %s by %s: ports %v pass %v", spec, whole.Node(self).Name, whole.Node(to).Name, set.Name(n), ports, passed)
						}
						boomerangs++
					}
				}
			}
			if _, ok := l.Of(&Probe{Via: whole.Node(self).Addr, Dst: whole.Node(self).Addr, body: encap.Probe{Kind: encap.Boomerang}}); ok {
				t.Errorf("%s: a host bounces", spec)
			}
			if _, ok := l.Of(&Probe{Path: 1000, Dst: whole.Node(topology.NodeID(whole.NumHosts() - 1)).Addr, body: encap.Probe{Kind: encap.ProbeRequest}}); ok && self != topology.NodeID(whole.NumHosts()-1) {
				t.Errorf("%s: there is a path 1000", spec)
			}
		}
		if boomerangs == 0 {
			t.Errorf("%s: no paths", spec)
		}
	}
}
