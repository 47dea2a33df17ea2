package lab

import (
	"testing"

	"weft/internal/frr"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

func homed(t *testing.T, spec string, h operator.Homing) *graph.Graph {
	t.Helper()
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	s, err := operator.SpecHomed(kerneltest.Topology(t, spec), 2, h)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Hosts at two leaves reach each other, of both families, also while one of a rack's leaves or
// one of a host's links has failed.
func TestGraph_twoLeavesARack(t *testing.T) {
	slowtest.System(t)
	l := upGraph(t, Config{Name: kerneltest.LabName("q"), Graph: homed(t, "leaf-spine:leaves=4,spines=2,hosts=1", operator.Homing{Uplinks: 2})})
	connected(t, l, "h1-1", "h2-2")
	for _, target := range []string{"leaf1", "leaf4", "h1-1-leaf2", "h2-2:eth1"} {
		mustFail(t, l, target, FailLoud)
		connected(t, l, "h1-1", "h2-2")
		connected(t, l, "h2-2", "h1-1")
		mustHeal(t, l)
		connected(t, l, "h1-1", "h2-2")
	}
	wantNothingLeft(t, l)
}

// The spines of all planes bounce packets to a host, at its port in that plane.
func TestGraph_planes(t *testing.T) {
	slowtest.System(t)
	l := upGraph(t, Config{Name: kerneltest.LabName("y"), Graph: homed(t, "leaf-spine:leaves=2,spines=1,hosts=1", operator.Homing{Planes: 3})})
	connected(t, l, "h1-1", "h2-1")
	src, dst := l.mustLookup(t, "h1-1"), l.mustLookup(t, "h2-1")
	for plane, spine := range []string{"p1-spine1", "p2-spine1", "p3-spine1"} {
		out, in := openWire(t, l, src, plane), openWire(t, l, dst, plane)
		inner := kerneltest.IPv4{TTL: 17, Protocol: 253, Src: l.addresses(t, "h1-1")[0], Dst: l.addresses(t, "h2-1")[0]}
		outer := kerneltest.IPv4{TTL: 64, Protocol: 4, Src: inner.Src, Dst: l.addresses(t, spine)[0]}
		out.Send(t, outer.Bytes(inner.Bytes([]byte(spine))))
		for got := in.Receive(t); ; got = in.Receive(t) {
			if got[9] == 253 { // else of an earlier connection
				if string(got[20:]) != spine {
					t.Errorf("by %s arrives %x", spine, got)
				}
				break
			}
		}
	}
	wantNothingLeft(t, l)
}
