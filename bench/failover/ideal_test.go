package failover

import (
	"math"
	"testing"

	"weft/topology"
)

func parse(t *testing.T, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func without(t *testing.T, top *topology.Topology, targets ...string) *topology.Topology {
	t.Helper()
	for _, name := range targets {
		links, err := linksOf(top, name)
		if err != nil {
			t.Fatal(err)
		}
		top = top.Without(links...)
	}
	return top
}

// Removing one of n cores takes 1/n of what all hosts have together (DRB §4.3).
func TestIdeal_isLessByTheCoresThatAreGone(t *testing.T) {
	tests := []struct {
		spec  string
		gone  []string
		share float64
	}{
		{"fat-tree:k=4", nil, 1},
		{"fat-tree:k=4", []string{"3.0"}, 3. / 4},
		{"fat-tree:k=4", []string{"3.0", "3.1"}, 2. / 4},
		{"fat-tree:k=4", []string{"3.0", "3.2"}, 2. / 4},
		{"fat-tree:k=6", []string{"3.0"}, 8. / 9},
		{"fat-tree:k=6", []string{"3.0", "3.1"}, 7. / 9},
		{"fat-tree:k=6", []string{"3.0", "3.1", "3.2"}, 6. / 9},
	}
	for _, tt := range tests {
		whole := parse(t, tt.spec)
		to, err := permute(whole, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := sum(Ideal(without(t, whole, tt.gone...), to, 20))
		want := tt.share * float64(whole.NumHosts()) * 20 * Payload
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s without %v: %.3f Mbit/s, want %.3f", tt.spec, tt.gone, got, want)
		}
	}
}

// Only pairs whose pod lost the link have less; nobody has more than a host's link.
func TestIdeal_isMaxMinFair(t *testing.T) {
	whole := parse(t, "fat-tree:k=4")
	for seed := range uint64(20) {
		to, _ := permute(whole, seed)
		damaged := without(t, whole, "a0.2-c1.1")
		got := Ideal(damaged, to, 1)
		used := make(map[direction]float64)
		for i, j := range to {
			for d, x := range linkShares(damaged, topology.NodeID(i), j) {
				used[d] += x * got[i] / Payload
			}
		}
		for d, x := range used {
			if x > 1+1e-9 {
				t.Fatalf("seed %d: link %d carries %v of its rate", seed, d.link, x)
			}
		}
		for i, j := range to {
			// Max-min: a stream is held back by a full link of its own.
			full := false
			for d := range linkShares(damaged, topology.NodeID(i), j) {
				full = full || used[d] > 1-1e-6
			}
			if !full {
				t.Errorf("seed %d: stream %d has %v and no full link", seed, i, got[i])
			}
		}
	}
}

func TestIdeal_ofAPairThatIsCutOffIsNothing(t *testing.T) {
	whole := parse(t, "fat-tree:k=2")
	to, _ := permute(whole, 1)
	if got := sum(Ideal(without(t, whole, "3.0"), to, 1)); got != 0 {
		t.Errorf("%v Mbit/s without the only core", got)
	}
}

// Every host of a fabric that is not plain has its share of the links that are
// fewer or slower than its own.
func TestIdeal_knowsEveryKindOfFabric(t *testing.T) {
	tests := []struct {
		spec string
		host float64 // of 20 Mbit/s
	}{
		{"fat-tree:k=4,hosts=4", 10},
		{"leaf-spine:leaves=4,spines=2,hosts=8", 5},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", 20},
		{"vl2:d0=2,d1=4,d2=4,hosts=4", 10},
		{"leaf-spine:leaves=4,spines=4,hosts=2,host-rate=7,fabric-rate=20", 7},
		{"fat-tree:k=4,fabric-rate=10", 10},
		{"fat-tree:k=4,core-rate=40", 20},
		{"leaf-spine:leaves=2,spines=2,hosts=2,fabric-rate=20,e0.0-a0.0=10,e0.1-a0.0=10", 15},
	}
	for _, tt := range tests {
		whole := parse(t, tt.spec)
		to, err := permute(whole, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range Ideal(whole, to, 20) {
			if math.Abs(got-tt.host*Payload) > 1e-6 {
				t.Errorf("%s: host %d has %.3f Mbit/s, want %.3f", tt.spec, i, got, tt.host*Payload)
			}
		}
	}
}
