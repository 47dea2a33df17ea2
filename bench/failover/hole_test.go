package failover

import (
	"slices"
	"testing"

	"weft/topology"
)

// The oracle walks every path and looks for the link.
func TestNewHole_isWhatCrossesTheLinks(t *testing.T) {
	for _, target := range []string{"c1.1", "a0.2-c1.1", "e1.0-a1.2", "a3.3"} {
		whole := parse(t, "fat-tree:k=4")
		to, _ := permute(whole, 3)
		links, err := linksOf(whole, target)
		if err != nil {
			t.Fatal(err)
		}
		h := newHole(whole, pairsOf(to), links...)
		dead, others := 0, 0
		for _, p := range pairsOf(to) {
			set := whole.Paths(p.Src, p.Dst)
			for _, n := range set.Live {
				walked, err := whole.Path(p.Src, p.Dst, set.Bounce(n))
				if err != nil {
					t.Fatal(err)
				}
				crosses := slices.ContainsFunc(walked.Links, func(l topology.LinkID) bool { return slices.Contains(links, l) })
				c := path{p, set.Addr(n)}
				if _, ok := h.dead[c]; ok != crosses {
					t.Errorf("%s: path %d of %v: in the hole %v, crosses %v", target, n, p, ok, crosses)
				}
				if crosses {
					dead++
				}
				if _, ok := h.others[c]; ok {
					others++
					if crosses || !slices.Contains(h.bounces, c.bounce) {
						t.Errorf("%s: path %d of %v is none of the others", target, n, p)
					}
				}
			}
		}
		if dead == 0 || dead != len(h.dead) || others != len(h.others) {
			t.Errorf("%s: %d dead of %d, %d others of %d", target, dead, len(h.dead), others, len(h.others))
		}
		if whole := target == "c1.1"; whole != (others == 0) {
			t.Errorf("%s: %d others", target, others)
		}
	}
}

func TestLinksOf_namesWhatItDoesNotKnow(t *testing.T) {
	if _, err := linksOf(parse(t, "fat-tree:k=4"), "c1.1-a0.9"); err == nil {
		t.Error("a link that is not there was found")
	}
}

func TestTargets_takesTurnsAndEachAsOften(t *testing.T) {
	whole := parse(t, "fat-tree:k=4")
	all := targets(whole, 32, 7)
	count := make(map[string]int)
	for i, target := range all {
		links, err := linksOf(whole, target)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{4, 1}[i%2]; len(links) != want {
			t.Errorf("%s has %d links, want %d", target, len(links), want)
		}
		count[target]++
	}
	if len(count) != 4+16 || count[all[0]] != 4 {
		t.Errorf("%v", count)
	}
	if !slices.Equal(all, targets(whole, 32, 7)) || slices.Equal(all, targets(whole, 32, 8)) {
		t.Error("the seed does not decide the order")
	}
}

func TestPermute_crossesTheTopOfEveryKind(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=3,spines=2,hosts=2"} {
		whole, err := topology.Parse(spec)
		if err != nil {
			t.Logf("%s: %v", spec, err)
			continue
		}
		to, err := permute(whole, 1)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[topology.NodeID]bool)
		for i, j := range to {
			if seen[j] || whole.Paths(topology.NodeID(i), j).Direct() {
				t.Errorf("%s: %d to %d", spec, i, j)
			}
			seen[j] = true
		}
	}
}
