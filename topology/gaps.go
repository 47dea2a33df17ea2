package topology

import (
	"slices"

	"weft/topology/graph"
)

// gaps leaves out what a fabric lacks of which switches tell. A nil gaps leaves out nothing.
type gaps struct {
	sids  bool                         // packets go to SIDs
	paths map[graph.NodeID]graph.Paths // to edge switches
}

// between returns the paths to a rack that can be used.
func (s *gaps) between(b *viewBuilder, edges []graph.NodeID) graph.Paths {
	if s == nil {
		return b.g.Between(b.own, edges)
	}
	p, known := s.paths[edges[0]]
	if len(edges) > 1 || !known {
		p = b.g.Between(b.own, edges)
		p.List = slices.DeleteFunc(p.List, func(path graph.Path) bool {
			_, ok := b.address(path.Bounce)
			return !ok || s.sids && b.g.Node(path.Bounce).SIDs.None()
		})
		p.List = fewer(p.List)
	}
	if len(edges) == 1 {
		s.paths[edges[0]] = p
	}
	return p
}

// cuts reports whether no path leads to an edge switch.
func (s *gaps) cuts(b *viewBuilder, edge graph.NodeID) bool {
	if s == nil {
		return false
	}
	p := s.between(b, []graph.NodeID{edge})
	return !p.Direct && len(p.List) == 0
}

// fewer returns up to MaxPaths paths. Each first choice on the way up keeps as many as the
// others, so that a switch that tells of many paths does not take those of others away.
func fewer(list []graph.Path) []graph.Path {
	if len(list) <= MaxPaths {
		return list
	}
	count := make(map[int]int)
	for _, p := range list {
		count[p.Digits[0]]++
	}
	most, total := MaxPaths, MaxPaths+1
	for total > MaxPaths {
		most--
		total = 0
		for _, n := range count {
			total += min(n, most)
		}
	}
	clear(count)
	return slices.DeleteFunc(list, func(p graph.Path) bool {
		count[p.Digits[0]]++
		if count[p.Digits[0]] == most+1 && total < MaxPaths { // one more of the first ones
			total++
			return false
		}
		return count[p.Digits[0]] > most
	})
}
