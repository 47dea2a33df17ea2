package sim

import (
	"math/rand/v2"
	"testing"

	"weft/topology"
)

var fabrics = []string{
	"fat-tree:k=2", "fat-tree:k=4", "fat-tree:k=4,hosts=5", "fat-tree:k=6",
	"leaf-spine:leaves=1,spines=2,hosts=3", "leaf-spine:leaves=4,spines=3,hosts=2",
	"vl2:d0=2,d1=4,d2=4,hosts=2", "vl2:d0=2,d1=4,d2=8,hosts=3", "vl2:d0=3,d1=4,d2=6,hosts=1",
}

// TestFabric_route compares with topology's paths, all of small fabrics and some of
// large ones.
func TestFabric_route(t *testing.T) {
	check := func(topo *topology.Topology, f *fabric, src, dst topology.NodeID, path int, set topology.PathSet) {
		t.Helper()
		var got [maxHops]int32
		hops := int(f.route(&got, int32(src), int32(dst), path))
		if hops != int(f.hops(int32(src), int32(dst))) {
			t.Fatalf("%v: %d to %d: %d hops, and then %d", topo, src, dst, hops, f.hops(int32(src), int32(dst)))
		}
		var way topology.Path
		if set.Direct() {
			way, _ = topo.Path(src, dst, topo.Link(topology.LinkID(src)).B)
		} else {
			way = set.Path(path)
		}
		if hops != len(way.Links)-1 {
			t.Fatalf("%v: %d to %d by %d: %d hops, want %d", topo, src, dst, path, hops, len(way.Links)-1)
		}
		for i, l := range way.Links[1:] {
			want := up(int32(l))
			if topo.Link(l).B == way.Hops[i+1] {
				want = down(int32(l))
			}
			if got[i] != want {
				t.Fatalf("%v: %d to %d by %d: port %d, want %d", topo, src, dst, path, got[i], want)
			}
		}
	}
	for _, spec := range fabrics {
		topo := parse(t, spec)
		f := newFabric(topo)
		for src := range topo.NumHosts() {
			for dst := range topo.NumHosts() {
				if src == dst {
					continue
				}
				set := topo.Paths(topology.NodeID(src), topology.NodeID(dst))
				for path := range max(set.Count(), 1) {
					check(topo, &f, topology.NodeID(src), topology.NodeID(dst), path, set)
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, spec := range []string{"fat-tree:k=24", "fat-tree:k=12,hosts=24", "vl2:d0=4,d1=64,d2=24", "leaf-spine:leaves=48,spines=48,hosts=48", "fat-tree:k=48"} {
		topo := parse(t, spec)
		f := newFabric(topo)
		for range 3000 {
			src, dst := topology.NodeID(rng.IntN(topo.NumHosts())), topology.NodeID(rng.IntN(topo.NumHosts()))
			if src != dst {
				set := topo.Paths(src, dst)
				check(topo, &f, src, dst, rng.IntN(max(set.Count(), 1)), set)
			}
		}
	}
}

func TestPlace(t *testing.T) {
	topo := parse(t, "fat-tree:k=4")
	set := topo.Paths(0, 15)
	f := newFabric(topo)
	var route [maxHops]int32
	f.route(&route, 0, 15, 0)
	want := []int{EdgeUp, AggUp, CoreDown, AggDown, EdgeDown}
	for i, port := range route {
		if got := place(topo, int(port)); got != want[i] {
			t.Errorf("hop %d of %d: place %d, want %d", i+1, set.Count(), got, want[i])
		}
	}
	if got := place(topo, int(up(0))); got != HostNIC {
		t.Errorf("a host's port: place %d, want HostNIC", got)
	}
}
