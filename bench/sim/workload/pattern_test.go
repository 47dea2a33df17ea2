package workload

import (
	"testing"

	"weft/topology"
)

var fabrics = []string{
	"fat-tree:k=2", "fat-tree:k=4", "fat-tree:k=8,hosts=3", "fat-tree:k=12,hosts=24",
	"leaf-spine:leaves=4,spines=3,hosts=5", "leaf-spine:leaves=2,spines=1,hosts=1", "vl2:d0=2,d1=8,d2=6,hosts=4",
}

func parse(t *testing.T, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// sameRack and samePod go by the paths of a pair, not by hosts' numbers.
func sameRack(top *topology.Topology, a, b topology.NodeID) bool { return top.Paths(a, b).Direct() }

func samePod(top *topology.Topology, a, b topology.NodeID) bool {
	return len(top.Paths(a, b).Bases) < 2
}

func allowed(top *topology.Topology, w Where, a, b topology.NodeID) bool {
	switch w {
	case OtherRack:
		return !sameRack(top, a, b)
	case OtherPod:
		return !samePod(top, a, b)
	}
	return a != b
}

func possible(top *topology.Topology, w Where) bool {
	for b := range topology.NodeID(top.NumHosts()) {
		if allowed(top, w, 0, b) {
			return true
		}
	}
	return false
}

func TestPermutation_isOne(t *testing.T) {
	for _, spec := range fabrics {
		top := parse(t, spec)
		for w := Anywhere; w <= OtherPod; w++ {
			for seed := range uint64(5) {
				to, err := Permutation(top, w, seed)
				if (err == nil) != possible(top, w) {
					t.Fatalf("%s, %v: error %v", spec, w, err)
				}
				if err != nil {
					continue
				}
				seen := make([]bool, top.NumHosts())
				for src, dst := range to {
					if seen[dst] || !allowed(top, w, topology.NodeID(src), dst) {
						t.Fatalf("%s, %v, seed %d: %d sends to %d, which is too near or receives twice", spec, w, seed, src, dst)
					}
					seen[dst] = true
				}
			}
		}
	}
}

// Over many seeds each host is the first one's destination as often.
func TestPermutation_isUniform(t *testing.T) {
	top, count, n := parse(t, "fat-tree:k=4"), make([]int, 16), 12_000
	for seed := range uint64(n) {
		to, _ := Permutation(top, OtherPod, seed)
		count[to[5]]++
	}
	for dst, c := range count {
		if want := float64(n) / 12; !samePod(top, 5, topology.NodeID(dst)) && (float64(c) < .88*want || float64(c) > 1.12*want) {
			t.Errorf("host 5 sends to %d in %d of %d permutations, want about %.0f", dst, c, n, want)
		}
	}
}

func TestUniform(t *testing.T) {
	for _, spec := range fabrics[:6] {
		top := parse(t, spec)
		for w := Anywhere; w <= OtherPod; w++ {
			to, err := Uniform(top, w)
			if (err == nil) != possible(top, w) {
				t.Fatalf("%s, %v: error %v", spec, w, err)
			}
			if err != nil || top.NumHosts() > 200 {
				continue
			}
			r, src := newRand(3), topology.NodeID(top.NumHosts()-1)
			count := make([]int, top.NumHosts())
			const each = 500
			for range each * top.NumHosts() {
				count[to(src, r)]++
			}
			hosts := 0
			for d := range count {
				if allowed(top, w, src, topology.NodeID(d)) {
					hosts++
				} else if count[d] > 0 {
					t.Errorf("%s, %v: %d sends to %d", spec, w, src, d)
				}
			}
			want := float64(each*top.NumHosts()) / float64(hosts)
			for d, c := range count {
				if c > 0 && (float64(c) < .75*want || float64(c) > 1.25*want) {
					t.Errorf("%s, %v: %d is drawn %d times, want about %.0f", spec, w, d, c, want)
				}
			}
		}
	}
}

func TestStride(t *testing.T) {
	top := parse(t, "fat-tree:k=4")
	to, err := Stride(top, 6)
	if err != nil || to[0] != 6 || to[9] != 15 || to[10] != 0 || to[15] != 5 {
		t.Errorf("stride 6: %v, %v", to, err)
	}
	for _, by := range []int{0, 16, -1} {
		if _, err := Stride(top, by); err == nil {
			t.Errorf("a stride of %d is none", by)
		}
	}
}

func TestStaggered_goesAsFarAsAsked(t *testing.T) {
	top, n := parse(t, "fat-tree:k=16"), 1024
	for _, oneToOne := range []bool{false, true} {
		for _, p := range [][2]float64{{0, 0}, {1, 0}, {0, 1}, {.5, .3}, {.2, .3}} {
			to, err := Staggered(top, p[0], p[1], oneToOne, 11)
			if err != nil {
				t.Fatal(err)
			}
			seen, rack, pod := make([]int, n), 0.0, 0.0
			for src, dst := range to {
				if topology.NodeID(src) == dst {
					t.Fatalf("%v: %d sends to itself", p, src)
				}
				if seen[dst]++; oneToOne && seen[dst] > 1 {
					t.Fatalf("%v: %d receives twice", p, dst)
				}
				if sameRack(top, topology.NodeID(src), dst) {
					rack++
				} else if samePod(top, topology.NodeID(src), dst) {
					pod++
				}
			}
			// The last to choose find their rack's hosts taken, one in about ten.
			tolerance := .05
			if oneToOne {
				tolerance = .13
			}
			if d := rack/float64(n) - p[0]; d > tolerance || d < -tolerance {
				t.Errorf("%v, one to one %v: %.3f in the rack", p, oneToOne, rack/float64(n))
			}
			if d := pod/float64(n) - p[1]; d > tolerance || d < -tolerance {
				t.Errorf("%v, one to one %v: %.3f in the pod", p, oneToOne, pod/float64(n))
			}
		}
	}
	for seed := range uint64(200) { // few hosts: the last is often left with itself
		for _, spec := range []string{"fat-tree:k=2", "fat-tree:k=4", "leaf-spine:leaves=2,spines=1,hosts=1"} {
			to, err := Staggered(parse(t, spec), .4, .3, true, seed)
			if err != nil {
				t.Fatal(err)
			}
			seen := make([]bool, len(to))
			for src, dst := range to {
				if int(dst) == src || seen[dst] {
					t.Fatalf("%s, seed %d: %v", spec, seed, to)
				}
				seen[dst] = true
			}
		}
	}
	if _, err := Staggered(top, .8, .3, false, 1); err == nil {
		t.Error("probabilities of 1.1 together are taken")
	}
}

func TestInTurn_visitsAllOthersOnce(t *testing.T) {
	top := parse(t, "fat-tree:k=4")
	d, err := InTurn(top, 5)
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]bool{}
	for src := range topology.NodeID(16) {
		seen, order := map[topology.NodeID]bool{}, ""
		for dst := d(src, nil); dst >= 0; dst = d(src, nil) {
			if dst == src || seen[dst] {
				t.Fatalf("%d sends to %d", src, dst)
			}
			seen[dst], order = true, order+string(rune('a'+dst))
		}
		if len(seen) != 15 {
			t.Errorf("%d sends to %d others", src, len(seen))
		}
		orders[order] = true
	}
	if len(orders) != 16 {
		t.Error("hosts have the same order")
	}
}

func TestCapacities(t *testing.T) {
	for _, c := range []struct {
		spec                string
		hosts, fabric, apod float64
	}{
		{"fat-tree:k=12,hosts=24,host-rate=10000,fabric-rate=10000,core-rate=10000", 17_280_000, 4_320_000, 360_000},
		{"fat-tree:k=12,host-rate=10000,fabric-rate=10000,core-rate=10000", 4_320_000, 4_320_000, 360_000},
		{"leaf-spine:leaves=2,spines=2,hosts=32,host-rate=10000,fabric-rate=80000", 640_000, 320_000, 0},
	} {
		top := parse(t, c.spec)
		if h, f, p := HostsMbit(top), FabricMbit(top.Without(top.Ports(0)[0].Link)), PodMbit(top, 0); h != c.hosts || f != c.fabric || p != c.apod {
			t.Errorf("%s: hosts %v, fabric %v, pod %v", c.spec, h, f, p)
		}
	}
	top := parse(t, "fat-tree:k=4")
	if got := len(PodOf(top, 5)); got != 4 || PodOf(top, 5)[0] != 4 {
		t.Errorf("the pod of 5 is %v", PodOf(top, 5))
	}
	if got := RackOf(top, 5); len(got) != 2 || got[0] != 4 {
		t.Errorf("the rack of 5 is %v", got)
	}
}
