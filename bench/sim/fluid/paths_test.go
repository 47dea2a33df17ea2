package fluid

import "testing"

// The thesis' example (§3.1.5): 10.0.1.2 to 10.2.0.3 leaves its edge switch by
// port 2 and the aggregation switch by port 3, to 10.2.0.2 by the other ones.
func TestTwoLevel_workedExample(t *testing.T) {
	f := fabricOf(t, kinds[0])
	src := nodeID(2) // pod 0, switch 1, the first host
	for _, c := range []struct{ dst, edgePort, aggPort int }{
		{8 + 1, 2, 3}, // 10.2.0.3
		{8 + 0, 3, 3}, // 10.2.0.2
	} {
		path := f.TwoLevel(Pair{Src: src, Dst: nodeID(c.dst)})
		if g, core := path/2, path%2; g+2 != c.edgePort || core+2 != c.aggPort {
			t.Errorf("to host %d: ports %d and %d, want %d and %d", c.dst, g+2, core+2, c.edgePort, c.aggPort)
		}
	}
}

// Whatever goes to one host number from the racks of a pod takes different
// aggregation switches: the modulo shift is for that.
func TestTwoLevel_shiftsByRack(t *testing.T) {
	f := fabricOf(t, "fat-tree:k=8,host-rate=1,fabric-rate=1,core-rate=1")
	for dst := 16; dst < 128; dst++ {
		seen := make(map[int]bool)
		for rack := range 4 {
			seen[f.TwoLevel(Pair{Src: nodeID(4 * rack), Dst: nodeID(dst)})/4] = true
		}
		if len(seen) != 4 {
			t.Errorf("to %d: %d aggregation switches, want 4", dst, len(seen))
		}
	}
}

func TestHash_spreadsByItsKey(t *testing.T) {
	f := fabricOf(t, kinds[0])
	distinct := func(key HashKey, pairs []Pair) int {
		h := &Hash{Fabric: f, Key: key, Seed: 5}
		seen := make(map[int]bool)
		for i, p := range pairs {
			path := h.Path(p, uint64(i))
			if path < 0 || path >= f.Paths(p.Src, p.Dst) {
				t.Fatalf("path %d of %d", path, f.Paths(p.Src, p.Dst))
			}
			seen[path] = true
		}
		return len(seen)
	}
	var same, pod, all []Pair
	for i := range 40 {
		same = append(same, Pair{Src: 0, Dst: 9})
		pod = append(pod, Pair{Src: nodeID(i % 4), Dst: nodeID(8 + i/4%4)})
		all = append(all, Pair{Src: 0, Dst: nodeID(4 + i%12)})
	}
	for _, c := range []struct {
		name  string
		key   HashKey
		pairs []Pair
		want  int
	}{
		{"flows of a pair by flow", ByFlow, same, 4},
		{"flows of a pair by destination", ByDestination, same, 1},
		{"a pod by pod", ByPod, pod, 1},
	} {
		if got := distinct(c.key, c.pairs); got != c.want {
			t.Errorf("%s: %d paths, want %d", c.name, got, c.want)
		}
	}
	if got := distinct(ByDestination, all); got < 3 {
		t.Errorf("12 destinations: %d paths", got)
	}
}
