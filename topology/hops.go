package topology

import "fmt"

// Path is the way of a packet: n+1 nodes and the n links between them.
type Path struct {
	Hops  []NodeID
	Links []LinkID
}

// Path returns the way of a packet by path number n of the set, live or not, between the
// hosts or edge switches that the set is of. The set must not be Direct. In all kinds of fabric a number means exactly one path:
// in VL2 a virtual spine has one link to each aggregation group (DRB Theorem 3).
func (s PathSet) Path(n int) Path {
	if s.rack != nil {
		return s.viewPath(n)
	}
	via := s.bounce(n)
	up, down := s.t.climb(s.src, via), s.t.climb(s.dst, via)
	return join(up, down)
}

// Halves returns the links of path number n between switches, live or not, each half from
// its edge switch to the bouncing switch. The hosts' own links are not among them. The
// slices are the caller's.
func (s PathSet) Halves(n int) (up, down []LinkID) {
	if s.rack != nil {
		u, d := s.rack.ends(n)
		return []LinkID{u}, []LinkID{d}
	}
	via, t := s.bounce(n), s.t
	if via.layer == LayerAgg {
		return []LinkID{t.edgeLink(s.src.pod, s.src.sw, via.sw)}, []LinkID{t.edgeLink(s.dst.pod, s.dst.sw, via.sw)}
	}
	g, c := via.pod, via.sw
	return []LinkID{t.edgeLink(s.src.pod, s.src.sw, g), t.coreLink(s.src.pod, g, c)},
		[]LinkID{t.edgeLink(s.dst.pod, s.dst.sw, g), t.coreLink(s.dst.pod, g, c)}
}

// Path returns the path from src to dst through one of their bouncing switches, live or
// not. In one rack via must be the hosts' edge switch. A spine of VL2 is several bouncing
// switches in one, so it does not determine the path: use PathSet's Path.
func (t *Topology) Path(src, dst, via NodeID) (Path, error) {
	if t.view != nil {
		return Path{}, fmt.Errorf("path: in %s a switch does not determine it; choose one by its number in Paths", t.spec)
	}
	if !t.Valid(src) || !t.Valid(dst) || int(src) >= t.numHosts() || int(dst) >= t.numHosts() {
		return Path{}, fmt.Errorf("path: both ends must be hosts of %s", t.spec)
	}
	if !t.Valid(via) {
		return Path{}, fmt.Errorf("path: bouncing switch %d is not in %s", via, t.spec)
	}
	a, b, v := t.position(src), t.position(dst), t.position(via)
	if t.virtual() > 1 && v.layer == LayerCore {
		return Path{}, fmt.Errorf("path: %s is %d virtual spines, each on a path of its own; choose one by its number in Paths",
			t.name(v), t.virtual())
	}
	if !above(v, a) || !above(v, b) {
		return Path{}, fmt.Errorf("path: %s is not above both %s and %s", t.name(v), t.name(a), t.name(b))
	}
	return join(t.climb(a, v), t.climb(b, v)), nil
}

// above reports whether a switch can be reached from a host by going up only.
func above(v, host position) bool {
	switch v.layer {
	case LayerEdge:
		return v.pod == host.pod && v.sw == host.sw
	case LayerAgg:
		return v.pod == host.pod
	}
	return v.layer == LayerCore
}

// climb returns the way from a host or an edge switch up to a switch above it, both
// included; a virtual spine is given by its group and its place there.
func (t *Topology) climb(host, v position) (p Path) {
	if host.layer == LayerHost {
		h := t.id(host)
		p.Hops, p.Links = append(p.Hops, h), append(p.Links, t.hostLink(h))
	}
	p.Hops = append(p.Hops, t.id(position{layer: LayerEdge, pod: host.pod, sw: host.sw}))
	if v.layer == LayerEdge {
		return p
	}
	agg := v.sw
	if v.layer == LayerCore {
		agg = v.pod
	}
	p.Hops = append(p.Hops, t.id(position{layer: LayerAgg, pod: host.pod, sw: agg}))
	p.Links = append(p.Links, t.edgeLink(host.pod, host.sw, agg))
	if v.layer == LayerCore {
		p.Hops = append(p.Hops, t.id(v))
		p.Links = append(p.Links, t.coreLink(host.pod, agg, v.sw))
	}
	return p
}

// join appends to a way up another one, turned round, to the same switch.
func join(up, down Path) Path {
	for i := len(down.Links) - 1; i >= 0; i-- {
		up.Links = append(up.Links, down.Links[i])
		up.Hops = append(up.Hops, down.Hops[i])
	}
	return up
}
