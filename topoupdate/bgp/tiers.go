package bgp

import (
	"cmp"
	"slices"
)

// doubtLinks leaves out new links between switches of before that others tell of than those
// who tell of the switches: a switch would announce such a link itself.
func (b *builder) doubtLinks() {
	var doubted [][2]uint32
	for l, w := range b.links {
		x, y := b.ases[l[0]], b.ases[l[1]]
		if b.t.last.links[l] || b.t.last.tiers[x.number] == 0 || b.t.last.tiers[y.number] == 0 {
			continue
		}
		if slices.ContainsFunc(w.common, func(as uint32) bool { return !slices.Contains(x.common, as) && !slices.Contains(y.common, as) }) {
			doubted = append(doubted, l)
		}
	}
	slices.SortFunc(doubted, compareLinks)
	for _, l := range doubted {
		b.guess("AS %d alone tells of a link between AS %d and AS %d; it is left out", b.links[l].common[0], l[0], l[1])
		delete(b.links, l)
	}
}

func compareLinks(x, y [2]uint32) int {
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
}

// setTiers gives edge switches tier 1, and others the number of links to the next edge
// switch and 1. Links of which one switch alone tells count for what the others do not reach.
// A switch that is still wired to the tier below stays in its tier, or comes lower.
func (b *builder) setTiers() {
	var sure, all [][2]uint32
	for l, w := range b.links {
		if all = append(all, l); len(w.common) == 0 {
			sure = append(sure, l)
		}
	}
	before := b.t.last.tiers
	for l := range b.links {
		for i, number := range l {
			if tier := before[number]; tier > 1 && before[l[1-i]] == tier-1 {
				b.ases[number].tier = tier
			}
		}
	}
	for _, a := range b.ases {
		if a.ends(before[a.number]) {
			a.tier = 1
		}
	}
	b.spread(sure, true)
	b.spread(all, false)
}

// spread gives tiers to what has none and is wired to what has. If it is sure, it also
// lowers those of others.
func (b *builder) spread(links [][2]uint32, sure bool) {
	beside := make(map[uint32][]uint32)
	for _, l := range links {
		beside[l[0]], beside[l[1]] = append(beside[l[0]], l[1]), append(beside[l[1]], l[0])
	}
	levels := make(map[int][]*as)
	most := 0
	for number := range beside {
		if a := b.ases[number]; a.tier > 0 {
			levels[a.tier] = append(levels[a.tier], a)
			most = max(most, a.tier)
		}
	}
	for tier := 1; tier <= most; tier++ {
		for _, a := range levels[tier] {
			if a.tier != tier {
				continue // it has come lower
			}
			for _, number := range beside[a.number] {
				if other := b.ases[number]; other.tier == 0 || other.tier > tier+1 && sure {
					other.tier = tier + 1
					levels[tier+1] = append(levels[tier+1], other)
					most = max(most, tier+1)
				}
			}
		}
	}
}
