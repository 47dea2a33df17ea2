package topology

import (
	"fmt"
	"net/netip"
)

// PathSet is what a sender needs to know of a pair: the live bouncing
// switches, numbered in a mixed radix system whose digits are the choices
// made going up, the lowest layer's first (the most significant digit picks
// the edge switch's uplink). DRB reverses these digits (DRB §3.1.2).
//
// An empty Bases means that no bounce is needed: both hosts are in one rack
// and packets go un-encapsulated. Bases with no Live path means that the pair
// is cut off.
type PathSet struct {
	Bases []int // choices per digit, most significant first
	Live  []int // path numbers in use, ascending
	first NodeID
	t     *Topology
}

// Direct reports whether the pair needs no bouncing switch.
func (s PathSet) Direct() bool { return len(s.Bases) == 0 }

// Bounce returns the switch at which path number n bounces.
func (s PathSet) Bounce(n int) NodeID { return s.first + NodeID(n) }

// Addr returns the outer destination address of path number n.
func (s PathSet) Addr(n int) netip.Addr { return s.t.Node(s.Bounce(n)).Addr }

// Paths returns the bouncing switches of a pair of hosts, both Valid: none
// within a rack, the pod's aggregation switches within a pod, the cores
// otherwise.
func (t *Topology) Paths(src, dst NodeID) PathSet {
	a, b := t.position(src), t.position(dst)
	s := PathSet{t: t}
	switch {
	case a.pod == b.pod && a.sw == b.sw:
		return s
	case a.pod == b.pod:
		s.Bases = []int{t.aggs}
		s.first = t.id(position{layer: LayerAgg, pod: a.pod})
	default:
		s.Bases = []int{t.aggs, t.cores}
		s.first = t.core(0)
	}
	n := 1
	for _, base := range s.Bases {
		n *= base
	}
	s.Live = make([]int, 0, n)
	for i := range n {
		if t.pathLive(a, b, s.first+NodeID(i)) {
			s.Live = append(s.Live, i)
		}
	}
	return s
}

// pathLive reports whether both switch-to-switch halves of a path are up. The
// hosts' own links are left out: no choice of path avoids them.
func (t *Topology) pathLive(a, b position, via NodeID) bool {
	if t.down == nil {
		return true
	}
	v := t.position(via)
	if v.layer == LayerAgg {
		return t.Live(t.edgeLink(a.pod, a.sw, v.sw)) && t.Live(t.edgeLink(b.pod, b.sw, v.sw))
	}
	agg, core := v.pod, v.sw
	return t.Live(t.edgeLink(a.pod, a.sw, agg)) && t.Live(t.coreLink(a.pod, agg, core)) &&
		t.Live(t.coreLink(b.pod, agg, core)) && t.Live(t.edgeLink(b.pod, b.sw, agg))
}

// Path is the way of a packet: n+1 nodes and the n links between them.
type Path struct {
	Hops  []NodeID
	Links []LinkID
}

// Path returns the one path from src to dst through a bouncing switch of
// theirs, up and down again, live or not. In one rack via must be the hosts'
// edge switch.
func (t *Topology) Path(src, dst, via NodeID) (Path, error) {
	if !t.Valid(src) || !t.Valid(dst) || int(src) >= t.numHosts() || int(dst) >= t.numHosts() {
		return Path{}, fmt.Errorf("path: both ends must be hosts of %s", t.spec)
	}
	if !t.Valid(via) {
		return Path{}, fmt.Errorf("path: bouncing switch %d is not in %s", via, t.spec)
	}
	up, ok := t.climb(src, via)
	down, ok2 := t.climb(dst, via)
	if !ok || !ok2 {
		return Path{}, fmt.Errorf("path: %s is not above both %s and %s",
			t.Node(via).Name, t.Node(src).Name, t.Node(dst).Name)
	}
	p := up
	for i := len(down.Links) - 1; i >= 0; i-- {
		p.Links = append(p.Links, down.Links[i])
		p.Hops = append(p.Hops, down.Hops[i])
	}
	return p, nil
}

// climb returns the way from a host up to a switch above it.
func (t *Topology) climb(host, to NodeID) (Path, bool) {
	h, v := t.position(host), t.position(to)
	edge := t.id(position{layer: LayerEdge, pod: h.pod, sw: h.sw})
	p := Path{Hops: []NodeID{host, edge}, Links: []LinkID{t.hostLink(host)}}
	agg := v.sw
	switch v.layer {
	case LayerEdge:
		return p, to == edge
	case LayerAgg:
		if v.pod != h.pod {
			return Path{}, false
		}
	case LayerCore:
		agg = v.pod
	default:
		return Path{}, false
	}
	p.Hops = append(p.Hops, t.id(position{layer: LayerAgg, pod: h.pod, sw: agg}))
	p.Links = append(p.Links, t.edgeLink(h.pod, h.sw, agg))
	if v.layer == LayerCore {
		p.Hops = append(p.Hops, to)
		p.Links = append(p.Links, t.coreLink(h.pod, agg, v.sw))
	}
	return p, true
}
