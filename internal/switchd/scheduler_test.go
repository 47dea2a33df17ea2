package switchd

import (
	"net/netip"
	"strings"
	"testing"

	"weft/internal/elephant"
	"weft/topology"
)

// At each switch of a flow's path the port found for it leads to the next node of the path, and
// at any other switch there is none.
func TestPortFor_leadsAlongThePath(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	for _, dst := range []topology.NodeID{2, 15} { // of the pod, of another one
		set := top.Paths(0, dst)
		for path := range set.Count() {
			hops := set.Path(path).Hops
			next := make(map[topology.NodeID]topology.NodeID)
			for i, h := range hops[:len(hops)-1] {
				next[h] = hops[i+1]
			}
			pin := elephant.Pin{Path: path, Via: set.Addr(path), Flow: elephant.Flow{Protocol: elephant.TCP,
				Src: netip.AddrPortFrom(top.Node(0).Addr, 1), Dst: netip.AddrPortFrom(top.Node(dst).Addr, 2)}}
			for n := range top.Nodes() {
				if n.Layer == topology.LayerHost {
					continue
				}
				port, err := portFor(top, n.ID, pin)
				want, on := next[n.ID]
				switch {
				case on != (err == nil):
					t.Errorf("path %d by %v at %s: port %d, %v", path, hops, n.Name, port, err)
				case on && top.Ports(n.ID)[port].Peer != want:
					t.Errorf("path %d by %v: port %d of %s leads to %v", path, hops, port, n.Name, top.Ports(n.ID)[port].Peer)
				}
			}
		}
	}
}

// A switch that has nothing to do for schedulers says why; one that has says nothing.
func TestFile_unscheduled(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	const keys = "balance: ecmp\nkeys: [{id: 1, key: c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=}]\n"
	for _, test := range []struct{ config, node, want string }{
		{keys, "c1.1", ""},
		{keys + "scheduler: {servers: [\"10.0.9.1:9341\"]}\n", "c1.1", "no choice of ports up"},
		{keys + "scheduler: {servers: [\"10.0.9.1:9341\"]}\n", "a0.2", "the kernel is too old"},
		{keys + "scheduler: {servers: [\"10.0.9.1:9341\"]}\n", "e0.0", "the kernel is too old"},
	} {
		f, err := parse([]byte("topology: \"fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000\"\nnode: "+test.node+"\n"+test.config), "s.yaml")
		if err != nil {
			t.Fatal(err)
		}
		n, _ := top.Lookup(test.node)
		got := f.unscheduled(Config{Topology: top, Self: n.ID}, "the kernel is too old")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.node, got, test.want)
		}
	}
}
