package daemon

import (
	"net/netip"
	"testing"
	"time"

	"weft/liveness"
	"weft/topology"
)

// The paths of all probed hosts of a rack are summed up, the worst rack first.
func TestRackPaths(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	var all []liveness.PathHealth
	for _, host := range []string{"h1.0.2", "h3.1.2", "h3.1.3"} {
		n, err := top.Lookup(host)
		if err != nil {
			t.Fatal(err)
		}
		for path := range 4 {
			all = append(all, liveness.PathHealth{Dst: n.Addr, Path: path, State: liveness.Up, RTT: time.Duration(path+1) * time.Millisecond})
		}
	}
	all[5].State, all[5].Why, all[5].Loss = liveness.Quarantined, "probes not answered", 1 // h3.1.2 by path 1
	all[6].State, all[6].Why = liveness.Slow, "it takes long"                              // by path 2
	all[9].State = liveness.Suspicious                                                     // h3.1.3 by path 1
	for i := 8; i < 12; i++ {
		all[i].State = liveness.Mute
	}
	got := rackPaths(top, all, func(edge topology.NodeID) bool { return top.Node(edge).Name == "e1.0" })
	want := []RackPaths{
		{Rack: "e1.0", Prefix: "10.1.0.0/24", Plain: true, Paths: 4, Up: 4, Hosts: 1, RTT: 3, Most: 4},
		{Rack: "e3.1", Prefix: "10.3.1.0/24", Paths: 4, Up: 2, Hosts: 2, Mute: 1, RTT: 3, Most: 4, Loss: 1.0 / 8, Worst: "quarantined", Why: "probes not answered"},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	all[0].Dst = netip.MustParseAddr("192.0.2.1")
	if got := rackPaths(top, all[:1], nil); got != nil {
		t.Errorf("a host of no rack: %+v", got)
	}
}
