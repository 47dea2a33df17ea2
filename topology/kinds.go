package topology

import (
	"cmp"
	"fmt"
)

// The range of k in fat-tree:k=K. At 64, addresses still fit in the octets
// (pods 0 to 63, the cores' 64) and a pair has 1,024 paths.
const (
	MinFatTreeK = 2
	MaxFatTreeK = 64
)

// Bounds of every fabric.
const (
	// MaxPaths is how many paths a pair of hosts has at most.
	MaxPaths = 1024
	// maxLinks bounds the set of links that every snapshot owns to 128 KB.
	maxLinks = 1 << 20
	// maxParameter keeps products of three parameters within an int.
	maxParameter = 1 << 16
)

// FatTree returns the k-ary fat-tree of k³/4 hosts (thesis §3.1): k pods of
// k/2 edge and k/2 aggregation switches, (k/2)² cores. k is even, MinFatTreeK
// to MaxFatTreeK. Core 3.r hangs on the aggregation switches r div k/2 of all
// pods (DRB Fig. 1a).
func FatTree(k int) (*Topology, error) { return newFatTree(k, 0) }

// newFatTree returns a fat-tree with so many hosts per edge switch; 0 means
// k/2. More oversubscribe it (DRB §5.5).
func newFatTree(k, hosts int) (*Topology, error) {
	if k < MinFatTreeK || k > MaxFatTreeK || k%2 != 0 {
		return nil, badValue("k", "fat-tree: k=%d, must be even and from %d to %d", k, MinFatTreeK, MaxFatTreeK)
	}
	h := k / 2
	spec := fmt.Sprintf("fat-tree:k=%d", k)
	if hosts == 0 {
		hosts = h
	}
	if hosts != h {
		spec += fmt.Sprintf(",hosts=%d", hosts)
	}
	return newTopology(spec, shape{kind: fatTree, pods: k, edges: h, aggs: h, hosts: hosts, cores: h})
}

// newLeafSpine returns a two-level Clos: every leaf wired to every spine, at
// which packets bounce.
func newLeafSpine(leaves, spines, hosts int) (*Topology, error) {
	spec := fmt.Sprintf("leaf-spine:leaves=%d,spines=%d,hosts=%d", leaves, spines, hosts)
	if err := cmp.Or(inRange(leafSpine, "leaves", leaves), inRange(leafSpine, "spines", spines)); err != nil {
		return nil, err
	}
	return newTopology(spec, shape{kind: leafSpine, pods: 1, edges: leaves, aggs: spines, hosts: hosts})
}

// newVL2 returns the fabric of DRB §2.1 and §3.2: edge switches with d0
// uplinks, aggregation switches with d1 ports, spines with d2. The aggregation
// switches form d2/d0 groups of d0, each with d1/2 edge switches; every spine
// is split into d0 virtual ones, each with one port to each group. hosts is
// per edge switch; 0 means 10·d0, as in the paper.
func newVL2(d0, d1, d2, hosts int) (*Topology, error) {
	if err := cmp.Or(inRange(vl2, "d0", d0), inRange(vl2, "d1", d1), inRange(vl2, "d2", d2)); err != nil {
		return nil, err
	}
	switch {
	case d1%2 != 0:
		return nil, badValue("d1", "vl2: d1=%d, must be even: half of an aggregation switch's ports go up", d1)
	case d2%d0 != 0:
		return nil, badValue("d2", "vl2: d2=%d, must be a multiple of d0=%d: a spine has a port per aggregation group and virtual spine", d2, d0)
	case d0 > 255 || d1/2 > 255:
		return nil, badValue("d0", "vl2: d0=%d and d1=%d, must be up to 255 and 510: virtual spines have addresses 10.255.J.I, J up to d0, I up to d1/2", d0, d1)
	}
	spec := fmt.Sprintf("vl2:d0=%d,d1=%d,d2=%d", d0, d1, d2)
	if hosts == 0 {
		hosts = 10 * d0
	}
	if hosts != 10*d0 {
		spec += fmt.Sprintf(",hosts=%d", hosts)
	}
	return newTopology(spec, shape{kind: vl2, pods: d2 / d0, edges: d1 / 2, aggs: d0, hosts: hosts, cores: d1 / 2})
}

func inRange(k kind, key string, n int) error {
	if n < 1 || n > maxParameter {
		return badValue(key, "%s: %s=%d, must be from 1 to %d", k, key, n, maxParameter)
	}
	return nil
}

// newTopology checks what all kinds must keep to.
func newTopology(spec string, s shape) (*Topology, error) {
	if s.hosts < 1 || s.hosts > maxRackHosts {
		return nil, badValue("hosts", "%s: hosts=%d per edge switch, must be from 1 to %d: a rack has a /24, in which each host has two addresses",
			s.kind, s.hosts, maxRackHosts)
	}
	if n := s.aggs * max(s.cores, 1); n > MaxPaths {
		return nil, fmt.Errorf("%s: a pair of hosts has %d paths, must be up to %d; choose fewer spines", s.kind, n, MaxPaths)
	}
	t := &Topology{spec: spec, shape: s, bases: []int{s.aggs, s.cores}}
	if n := t.NumLinks(); n > maxLinks {
		return nil, fmt.Errorf("%s: %d links, must be up to %d; choose fewer switches or hosts", s.kind, n, maxLinks)
	}
	if !t.flat() {
		return t, nil
	}
	// Racks count up from 10.0.0.0, aggregation switches down from the top.
	if racks, room := s.numEdges(), 256*(s.flatAggTop()-(s.numAggs()-1)>>8); racks > room {
		return nil, fmt.Errorf("%s: %d edge switches, must be up to %d: 10.0.0.0/8 has no more room beside %d aggregation switches",
			s.kind, racks, room, s.numAggs())
	}
	return t, nil
}
