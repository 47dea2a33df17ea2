package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// What is avoided is gone from the pair's live paths and from no other's, whatever is
// down besides, as long as something is left; the links are as they were.
func TestAvoiding_concernsThePairAlone(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=4,hosts=2", "vl2:d0=2,d1=4,d2=4"} {
		whole, err := Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		const seed = 5
		rng := rand.New(rand.NewPCG(seed, 1))
		before := whole
		for range 200 {
			var down []LinkID
			for range rng.IntN(3) {
				down = append(down, LinkID(rng.IntN(whole.NumLinks())))
			}
			base := whole.Without(down...)
			var list []Avoided
			for range rng.IntN(8) {
				src, dst := NodeID(rng.IntN(3)), NodeID(rng.IntN(whole.NumHosts()))
				if n := len(base.Paths(src, dst).Live); n > 0 {
					list = append(list, Avoided{src, whole.Node(dst).Addr, rng.IntN(whole.Paths(src, dst).Count())})
				}
			}
			now := base.Avoiding(list...)
			for src := range NodeID(3) {
				var other []netip.Addr
				for dst := range NodeID(whole.NumHosts()) {
					var want []int
					for _, n := range base.Paths(src, dst).Live {
						if !slices.Contains(list, Avoided{src, whole.Node(dst).Addr, n}) {
							want = append(want, n)
						}
					}
					if len(want) == 0 {
						want = base.Paths(src, dst).Live
					}
					if got := now.Paths(src, dst).Live; !slices.Equal(got, want) {
						t.Fatalf("%s, seed %d: %d to %d has %v, want %v", spec, seed, src, dst, got, want)
					}
					if !slices.Equal(pathsAvoided(before, src, dst), pathsAvoided(now, src, dst)) {
						other = append(other, whole.Node(dst).Addr)
					}
				}
				if got := before.Redirected(now, src); !slices.Equal(got, other) {
					t.Fatalf("%s, seed %d: from %d redirected are %v, want %v", spec, seed, src, got, other)
				}
			}
			if !slices.Equal(now.Down(), base.Down()) || now.Without().Avoiding(list...) != now || now.String() != whole.String() {
				t.Fatalf("%s, seed %d: %v are down of %v", spec, seed, now.Down(), base.Down())
			}
			if w := now.Whole(); len(w.Down())+len(w.Avoided()) > 0 || len(now.Avoiding().Avoided()) > 0 {
				t.Fatalf("%s, seed %d: the whole avoids %v", spec, seed, w.Avoided())
			}
			before = now
		}
	}
}

func pathsAvoided(t *Topology, src, dst NodeID) (list []int) {
	for _, a := range t.Avoided() {
		if a.Src == src && a.Dst == t.Node(dst).Addr {
			list = append(list, a.Path)
		}
	}
	return list
}
