package lookout

import (
	"net/netip"
	"slices"
	"testing"

	"weft/encap"
	"weft/internal/clock"
	"weft/internal/dataplane/dataplanetest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// narrow6 is narrow over IPv6, in a fabric with an operator's addresses.
func narrow6(t *testing.T, c clock.Clock, home *[][]byte) Config {
	t.Helper()
	g, err := graph.New(operator.Spec(fabric, 1))
	if err != nil {
		t.Fatal(err)
	}
	all := g.Node(0).Addresses
	self := all[slices.IndexFunc(all, netip.Addr.Is6)]
	seen, err := topology.FromGraph(g, self)
	if err != nil {
		t.Fatal(err)
	}
	config := mute(c)
	config.Probe.Topology, config.Probe.Address = seen, self
	config.Probe.Budget, config.Probe.MTU = 0, 1500
	config.Probe.Write = func(packet []byte, via netip.Addr) error {
		inner := packet[40:]
		if len(packet) > 1400 {
			inner = dataplanetest.TooBig6(via, 1400, packet)
		}
		*home = append(*home, append(make([]byte, encap.MaxOverhead), inner...))
		return nil
	}
	return config
}
