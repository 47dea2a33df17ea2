package topology

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever goes down and comes up: With undoes Without, Down and Diff say what
// a map says, and nothing that was made before changes.
func TestSnapshots_matchAMapOfLinks(t *testing.T) {
	const seed = 13
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, whole := range append(fabrics(t), mustFatTree(t, 8)) {
		top, down := whole, map[LinkID]bool{}
		older, olderDown := whole, map[LinkID]bool{}
		for step := range 200 {
			var links []LinkID
			for range rng.IntN(4) {
				links = append(links, LinkID(rng.IntN(whole.NumLinks())))
			}
			before, changes := top, false
			if up := rng.IntN(2) == 0; up {
				for _, l := range links {
					changes = changes || down[l]
					delete(down, l)
				}
				top = top.With(links...)
			} else {
				for _, l := range links {
					changes = changes || !down[l]
					down[l] = true
				}
				top = top.Without(links...)
			}
			if (top != before) != changes {
				t.Fatalf("seed %d: %v: another pointer is %v, a change %v", seed, whole, top != before, changes)
			}
			check := func(top *Topology, down map[LinkID]bool) {
				t.Helper()
				want := slices.Sorted(mapKeys(down))
				if got := top.Down(); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %v: down %v, want %v", seed, whole, got, want)
				}
				for l := range LinkID(whole.NumLinks()) {
					if top.Live(l) == down[l] {
						t.Fatalf("seed %d: %v: link %d is live: %v", seed, whole, l, top.Live(l))
					}
				}
			}
			check(top, down)
			check(older, olderDown)
			both := map[LinkID]bool{}
			for l := range LinkID(whole.NumLinks()) {
				if down[l] != olderDown[l] {
					both[l] = true
				}
			}
			want := slices.Sorted(mapKeys(both))
			for _, pair := range [][2]*Topology{{top, older}, {older, top}} {
				if got, ok := pair[0].Diff(pair[1]); !ok || !slices.Equal(got, want) {
					t.Fatalf("seed %d: %v: differs by %v, %v; want %v", seed, whole, got, ok, want)
				}
			}
			if top.Whole().Down() != nil || top.String() != whole.String() || top.Fingerprint() != whole.Fingerprint() {
				t.Fatalf("%v: %v down in the whole", whole, top.Whole().Down())
			}
			if step%40 == 0 {
				older, olderDown = top, map[LinkID]bool{}
				for l := range down {
					olderDown[l] = true
				}
			}
		}
	}
}

func mapKeys(m map[LinkID]bool) func(func(LinkID) bool) {
	return func(yield func(LinkID) bool) {
		for l := range m {
			if !yield(l) {
				return
			}
		}
	}
}

func TestDiff_onlyOfOneFabric(t *testing.T) {
	seen := map[uint64]string{}
	for _, a := range fabrics(t) {
		if was, ok := seen[a.Fingerprint()]; ok {
			t.Errorf("%v and %s have one fingerprint", a, was)
		}
		seen[a.Fingerprint()] = a.String()
		for _, b := range fabrics(t) {
			if links, same := a.Diff(b.Without(0)); same != (a.String() == b.String()) || same != (len(links) == 1) {
				t.Errorf("%v and %v differ by %v, %v", a, b, links, same)
			}
		}
	}
}

// any is compared with one link after the other.
func TestLinkSet_any(t *testing.T) {
	const seed = 17
	rng := rand.New(rand.NewPCG(seed, 0))
	top := mustFatTree(t, 8)
	for range 300 {
		cut := top
		for range rng.IntN(3) {
			cut = cut.Without(LinkID(rng.IntN(top.NumLinks())))
		}
		first := rng.IntN(top.NumLinks())
		n := rng.IntN(top.NumLinks() - first + 1)
		want := false
		for l := first; l < first+n; l++ {
			want = want || !cut.Live(LinkID(l))
		}
		if got := cut.down.any(LinkID(first), n); got != want {
			t.Fatalf("seed %d: %v: %d links from %d: %v", seed, cut.Down(), n, first, got)
		}
	}
}

// OnPaths is compared with the links that all paths of the pair, live or not,
// run over.
func TestOnPaths_matchesThePaths(t *testing.T) {
	for _, top := range fabrics(t) {
		for _, pair := range samplePairs(top) {
			on := map[LinkID]bool{}
			if set := top.Paths(pair[0], pair[1]); !set.Direct() {
				for _, n := range set.Live {
					p := set.Path(n)
					for _, l := range p.Links[1 : len(p.Links)-1] {
						on[l] = true
					}
				}
			}
			for l := range LinkID(top.NumLinks()) {
				if got := top.OnPaths(l, pair[0], pair[1]); got != on[l] {
					t.Fatalf("%v: %s on the paths of %v: %v, want %v", top, top.LinkName(l), pair, got, on[l])
				}
			}
		}
	}
}

func TestPaths_allocateNothingWhereNothingIsDown(t *testing.T) {
	whole := mustFatTree(t, 8)
	far := whole.Without(LinkID(whole.numHosts() + whole.NumHosts() - 1)) // in the last pod
	for _, top := range []*Topology{whole, far} {
		if n := testing.AllocsPerRun(100, func() { top.Paths(0, 20); top.Paths(0, 4) }); n != 0 {
			t.Errorf("without %v: %v allocations", top.Down(), n)
		}
	}
}

// Paths of one pair append to what others share: that must not show.
func TestPaths_sharedSlicesHaveNoRoom(t *testing.T) {
	top := mustFatTree(t, 4)
	a := top.Paths(0, 15)
	_ = append(a.Live, 99)
	_ = append(top.Paths(0, 2).Live, 99)
	_ = append(top.Paths(0, 2).Bases, 99)
	if b := mustFatTree(t, 6).Paths(0, 50); b.Live[4] != 4 || !slices.Equal(top.Paths(0, 15).Bases, []int{2, 2}) {
		t.Errorf("live %v, bases %v", b.Live, top.Paths(0, 15).Bases)
	}
}

func BenchmarkPaths(b *testing.B) {
	whole := mustFatTree(b, 48)
	near := whole.edgeLink(0, 0, 3)
	far := whole.coreLink(40, 5, 7)
	for _, c := range []struct {
		name string
		top  *Topology
	}{
		{"whole", whole},
		{"link down elsewhere", whole.Without(far)},
		{"link down on 24 paths", whole.Without(near)},
		{"139 links down", whole.Without(everyNth(whole, 400)...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.top.Paths(0, 9000)
			}
		})
	}
}

func everyNth(top *Topology, n int) (list []LinkID) {
	for l := top.numHosts(); l < top.NumLinks(); l += n {
		list = append(list, LinkID(l))
	}
	return list
}

func BenchmarkWithout(b *testing.B) {
	whole := mustFatTree(b, 48)
	l := whole.coreLink(40, 5, 7)
	cut := whole.Without(whole.edgeLink(0, 0, 3))
	b.ReportAllocs()
	for b.Loop() {
		cut.Without(l)
	}
}

func BenchmarkDiff(b *testing.B) {
	whole := mustFatTree(b, 48)
	cut := whole.Without(whole.coreLink(40, 5, 7))
	again := cut.Without(whole.edgeLink(0, 0, 3))
	for b.Loop() {
		cut.Diff(again)
	}
}

func BenchmarkOnPaths(b *testing.B) {
	whole := mustFatTree(b, 48)
	l := whole.coreLink(40, 5, 7)
	for b.Loop() {
		whole.OnPaths(l, 0, 9000)
	}
}

func BenchmarkRoutes(b *testing.B) {
	whole := mustFatTree(b, 48)
	for _, name := range []string{"e0.0", "a0.24", "3.0"} {
		id := mustLookup(b, whole, name)
		cut := whole.Without(whole.coreLink(40, 5, 7), whole.edgeLink(3, 1, 1))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cut.Routes(id)
			}
		})
	}
}
