package live

import "slices"

// MaxPaths bounds Paths. A fat-tree with k=24 has 144 paths between pods.
const MaxPaths = 256

// Path is a way through the fabric from node to node that goes up and then down.
type Path struct {
	Bounce int   `json:"bounce"` // the highest node
	Nodes  []int `json:"nodes"`
	Links  []int `json:"links"` // between the nodes
}

// climb is a way up.
type climb struct{ nodes, links []int }

// Paths returns the shortest ways between two nodes that first lead up and then down, whatever
// has failed, at most MaxPaths. Hosts of a VL2 use some of them only.
// A path bounces at the last node before it leads down.
func (f *Fabric) Paths(from, to int) []Path {
	if from < 0 || to < 0 || from >= len(f.Nodes) || to >= len(f.Nodes) || from == to {
		return []Path{}
	}
	ups := make([][]int, len(f.Nodes))
	for i, l := range f.Links {
		ups[l.A] = append(ups[l.A], i)
	}
	a, b := []climb{{nodes: []int{from}}}, []climb{{nodes: []int{to}}}
	for len(a) > 0 || len(b) > 0 {
		if paths := f.meet(a, b); len(paths) > 0 {
			return paths
		}
		// The lower side goes up, so that both are at one height where the fabric is even.
		if len(b) == 0 || len(a) > 0 && f.Nodes[last(a[0].nodes)].Tier <= f.Nodes[last(b[0].nodes)].Tier {
			a = f.higher(a, ups)
			if paths := f.meet(a, b); len(paths) > 0 || len(a) == 0 {
				return some(paths)
			}
			continue
		}
		b = f.higher(b, ups)
		if len(b) == 0 {
			return []Path{}
		}
	}
	return []Path{}
}

func last(nodes []int) int { return nodes[len(nodes)-1] }

// higher returns the climbs that are a link longer, within a bound.
func (f *Fabric) higher(all []climb, ups [][]int) (next []climb) {
	for _, c := range all {
		for _, l := range ups[last(c.nodes)] {
			if len(next) == MaxPaths {
				return next
			}
			next = append(next, climb{append(slices.Clone(c.nodes), f.Links[l].B), append(slices.Clone(c.links), l)})
		}
	}
	return next
}

// meet joins climbs that end at one node.
func (f *Fabric) meet(a, b []climb) (paths []Path) {
	at := make(map[int][]climb)
	for _, c := range b {
		at[last(c.nodes)] = append(at[last(c.nodes)], c)
	}
	for _, up := range a {
		for _, down := range at[last(up.nodes)] {
			if len(paths) == MaxPaths {
				return paths
			}
			p := Path{Bounce: last(up.nodes), Nodes: slices.Clone(up.nodes), Links: slices.Clone(up.links)}
			for i := len(down.links) - 1; i >= 0; i-- {
				p.Nodes, p.Links = append(p.Nodes, down.nodes[i]), append(p.Links, down.links[i])
			}
			paths = append(paths, p)
		}
	}
	return paths
}
