// Package dataplanetest has the common test helpers of packages dataplane and stack: a
// small fabric, packets, a clock that is moved by hand, a cable that carries
// super-segments. Only tests import it.
package dataplanetest

import (
	"net/netip"
	"testing"
	"time"

	"weft/topology"
)

// FatTree is a fabric of 16 hosts, with four paths between most of them.
var FatTree, _ = topology.FatTree(4)

// AddrA and AddrB are the addresses of two embedded stacks in it.
var (
	AddrA = netip.MustParseAddr("10.0.0.130") // pod 0
	AddrB = netip.MustParseAddr("10.3.1.131") // pod 3
)

// Node returns the number of a node.
func Node(t testing.TB, fabric *topology.Topology, name string) topology.NodeID {
	t.Helper()
	n, err := fabric.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// Between returns the link between two neighbours.
func Between(t testing.TB, fabric *topology.Topology, a, b string) topology.LinkID {
	t.Helper()
	peer := Node(t, fabric, b)
	for _, p := range fabric.Ports(Node(t, fabric, a)) {
		if p.Peer == peer {
			return p.Link
		}
	}
	t.Fatalf("there is no link from %s to %s", a, b)
	return 0
}

// Eventually waits up to ten seconds until other goroutines have made a condition true.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("not after ten seconds: %s", what)
}
