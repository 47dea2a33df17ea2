package lab

import (
	"testing"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// nodePlan is the plan of a node, by its name.
func nodePlan(t testing.TB, top *topology.Topology, name string) fabric.NodePlan {
	t.Helper()
	p, err := fabric.Plan(top, kerneltest.Node(t, top, name).ID, fabric.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openWire opens a wire on a port of a lab's node.
func openWire(t *testing.T, l *Lab, id topology.NodeID, port int) *kerneltest.Wire {
	t.Helper()
	p := l.Config.plant().Ports(id)[port]
	return kerneltest.OpenWire(t, l.Namespace(id), l.Config.portName(id, port), l.Namespace(p.Peer), l.Config.portName(p.Peer, p.PeerPort))
}
