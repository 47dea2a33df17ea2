package paths

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/drb"
	"weft/topology"
)

// setOf is the set of a pair of a fabric, some of whose links may be down.
func setOf(t *testing.T, spec string, down ...string) topology.PathSet {
	t.Helper()
	fabric, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range down {
		l, err := fabric.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		fabric = fabric.Without(l.ID)
	}
	return fabric.PathsOrAll(0, topology.NodeID(fabric.NumHosts()-1))
}

// A flow leaves its path only when that dies, and the flows of a dead path take all
// others alike.
func TestGroup_byHashKeepsFlowsInPlace(t *testing.T) {
	whole := NewGroup(drb.Hash, setOf(t, "fat-tree:k=4"), nil)
	less := NewGroup(drb.Hash, setOf(t, "fat-tree:k=4", "e0.0-a0.2"), nil) // two of four paths are dead
	rng := rand.New(rand.NewPCG(1, 2))
	moved := map[int]int{}
	for range 4000 {
		hash := rng.Uint64()
		was, ok := whole.ByHash(hash)
		is, ok2 := less.ByHash(hash)
		if !ok || !ok2 || !less.Has(is) {
			t.Fatalf("%x: path %d, then %d", hash, was, is)
		}
		if less.Has(was) && is != was {
			t.Fatalf("%x leaves path %d, which lives, for %d", hash, was, is)
		}
		if !less.Has(was) {
			moved[is]++
		}
	}
	if len(moved) != 2 {
		t.Errorf("flows have moved to %v", moved)
	}
	for path, n := range moved {
		if n < 850 || n > 1150 { // of 2,000 half
			t.Errorf("%d flows have moved to path %d: %v", n, path, moved)
		}
	}
	if _, ok := (&Group{}).ByHash(1); ok {
		t.Error("a group without paths has one")
	}
}

// Flows spread by the paths' weights, those that keep to a path and those that keep to
// a component.
func TestGroup_weightsAreShares(t *testing.T) {
	set := setOf(t, "fat-tree:k=4")
	set.Weights = []int{1, 2, 3, 4}
	components := []topology.Group{{Paths: []int{0, 1}, Weight: 3}, {Paths: []int{2, 3}, Weight: 7}}
	g := NewGroup(drb.RoundRobin, set, components)
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 20_000
	var paths [4]int
	var parts [2]int
	for range n {
		hash := rng.Uint64()
		path, _ := g.ByHash(hash)
		paths[path]++
		parts[g.Component(hash)]++
	}
	for i, got := range paths {
		if want := n * (i + 1) / 10; got < want*9/10 || got > want*11/10 {
			t.Errorf("path %d of weight %d has %d of %d flows", i, i+1, got, n)
		}
	}
	if parts[0] < n*27/100 || parts[0] > n*33/100 {
		t.Errorf("components of weights 3 and 7 have %v flows", parts)
	}
	if !slices.Equal(g.Components[0].Order, []int{0, 1}) || !slices.Equal(g.Components[1].Order, []int{2, 3}) {
		t.Errorf("%+v", g.Components)
	}
}

// Two keys are equal where live paths, weights and components are, and only there.
func TestAppendKey_tellsSetsApart(t *testing.T) {
	base := setOf(t, "fat-tree:k=8")
	rng := rand.New(rand.NewPCG(5, 6))
	known := map[string]string{}
	for range 20_000 {
		set := base
		set.Live, set.Weights = nil, nil
		for n := range base.Count() {
			if rng.IntN(4) > 0 {
				set.Live = append(set.Live, n)
			}
		}
		if rng.IntN(2) == 0 {
			for range set.Live {
				set.Weights = append(set.Weights, 1+rng.IntN(300))
			}
		}
		var components []topology.Group
		for rest := set.Live; len(rest) > 0 && rng.IntN(2) == 0; {
			k := 1 + rng.IntN(len(rest))
			components = append(components, topology.Group{Paths: rest[:k], Weight: 1 + rng.IntN(200)})
			rest = rest[k:]
		}
		what := fmt.Sprint(set.Live, set.Weights, components)
		key := string(AppendKey([]byte("rack"), set, components))
		if other, ok := known[key]; ok && other != what {
			t.Fatalf("%s and %s have the same key", what, other)
		}
		known[key] = what
		if key != string(AppendKey([]byte("rack"), set, components)) {
			t.Fatal("a key is not always the same")
		}
	}
}

// No two selectors of a host begin with the same seed.
func TestSeeds_differ(t *testing.T) {
	seen := map[uint64]string{}
	for _, pair := range []uint64{0, 2, 1 << 63, 1<<63 + 2, 1<<64 - 2} {
		for changes := range uint64(50) {
			for component := range 3 {
				data, ack := Seeds(pair, changes, component)
				for i, seed := range []uint64{data, ack} {
					what := fmt.Sprint(pair, changes, component, i)
					// The two of a pair are those of the pair whose seed differs in the highest
					// bit, the other way round.
					if other, ok := seen[seed]; ok && pair < 1<<63 {
						t.Fatalf("%s and %s have the same seed", what, other)
					}
					seen[seed] = what
				}
				if data == ack {
					t.Fatalf("pair %x: data and acknowledgements have the same seed", pair)
				}
			}
		}
	}
}
