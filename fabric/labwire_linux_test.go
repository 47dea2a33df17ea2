package fabric

import (
	"fmt"
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// openWire opens a wire on a port of a lab's node.
func openWire(t *testing.T, l *Lab, id topology.NodeID, port int) *kerneltest.Wire {
	t.Helper()
	p := l.Config.Topology.Ports(id)[port]
	return kerneltest.OpenWire(t, l.Namespace(id), fmt.Sprintf(DefaultPortFormat, port),
		l.Namespace(p.Peer), fmt.Sprintf(DefaultPortFormat, p.PeerPort))
}
