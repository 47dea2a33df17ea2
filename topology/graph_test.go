package topology

import (
	"slices"
	"testing"
)

// neighbours is who is wired to whom. A spine of VL2 is a node per virtual spine,
// numbered after all others: port v*groups+g of the spine is port g of virtual
// spine v.
type neighbours struct {
	top  *Topology
	near [][]NodeID
	of   []NodeID // the switch that a node is, or is part of
}

func extended(top *Topology) neighbours {
	g := neighbours{top: top}
	for n := range top.Nodes() {
		g.of = append(g.of, n.ID)
	}
	virtual := map[[2]int]NodeID{} // by switch and virtual spine
	for n := range top.Nodes() {
		if bounces := top.BouncingAddrs(n.ID); len(bounces) > 1 {
			for v := range bounces {
				virtual[[2]int{int(n.ID), v}] = NodeID(len(g.of))
				g.of = append(g.of, n.ID)
			}
		}
	}
	g.near = make([][]NodeID, len(g.of))
	for l := range top.Links() {
		b := l.B
		if v, ok := virtual[[2]int{int(b), l.PortB / top.pods}]; ok {
			b = v
		}
		g.near[l.A] = append(g.near[l.A], b)
		g.near[b] = append(g.near[b], l.A)
	}
	return g
}

// bounce returns the node at which a path bounces, by its address.
func (g neighbours) bounce(t *testing.T, set PathSet, n int) NodeID {
	t.Helper()
	id, ok := g.top.ByAddr(set.Addr(n))
	addrs := g.top.BouncingAddrs(id)
	v := slices.Index(addrs, set.Addr(n))
	if !ok || v < 0 {
		t.Fatalf("%v: nobody bounces at %v", g.top, set.Addr(n))
	}
	if len(addrs) == 1 {
		return id
	}
	return NodeID(slices.Index(g.of[g.top.NumNodes():], id) + g.top.NumNodes() + v)
}

func (g neighbours) physical(ids []NodeID) (list []NodeID) {
	for _, id := range ids {
		list = append(list, g.of[id])
	}
	return list
}

// ways are the shortest ways from one node to all others.
type ways struct {
	prev  []NodeID
	dist  []int
	count []int
}

func (g neighbours) breadthFirst(from NodeID) ways {
	n := len(g.near)
	w := ways{make([]NodeID, n), make([]int, n), make([]int, n)}
	for i := range w.dist {
		w.dist[i] = -1
	}
	w.prev[from], w.dist[from], w.count[from] = -1, 0, 1
	for queue := []NodeID{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range g.near[at] {
			if w.dist[to] < 0 {
				w.dist[to], w.prev[to] = w.dist[at]+1, at
				queue = append(queue, to)
			}
			if w.dist[to] == w.dist[at]+1 {
				w.count[to] += w.count[at]
			}
		}
	}
	return w
}

func (w ways) to(id NodeID) (hops []NodeID) {
	for ; id >= 0; id = w.prev[id] {
		hops = append(hops, id)
	}
	slices.Reverse(hops)
	return hops
}
