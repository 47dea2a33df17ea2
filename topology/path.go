package topology

import "net/netip"

// PathSet holds the paths of a pair of hosts: the live bouncing switches, numbered in a
// mixed radix system. The digits are the choices made on the way up, the lowest layer's
// first (the most significant digit selects the edge switch's uplink). DRB reverses these
// digits (DRB §3.1.2).
//
// Where the fabric is data, switches need not have equally many choices: then not all
// numbers of the mixed radix system are paths, and Ordered translates.
//
// An empty Bases means that no bounce is needed: both hosts are in one rack and packets
// go without an outer header. Bases with no Live path means that the pair is cut off.
//
// The slices may be shared with other sets and must not be changed.
type PathSet struct {
	Bases []int // choices per digit, most significant first
	Live  []int // path numbers in use, ascending
	// Weights are in proportion to the rates of the paths' slowest links between
	// switches, in lowest terms, one for each path in Live. nil if all are equal or no
	// rates are known. See Weighted.
	Weights []int

	t        *Topology
	src, dst position
	rack     *viewRack // in place of both, where the fabric is data
}

// Like reports whether two sets, of one topology and from one host, have the same
// bouncing switch for each number.
func (s PathSet) Like(o PathSet) bool {
	if s.rack != nil {
		return o.rack != nil && s.rack.list == o.rack.list
	}
	return len(s.Bases) == len(o.Bases) && (s.Direct() || s.bounce(0) == o.bounce(0))
}

// Direct reports whether the pair needs no bouncing switch.
func (s PathSet) Direct() bool { return len(s.Bases) == 0 }

// bounce returns where path number n bounces; for VL2 the virtual spine.
func (s PathSet) bounce(n int) position {
	if len(s.Bases) == 1 {
		return position{layer: LayerAgg, pod: s.src.pod, sw: n}
	}
	return position{layer: LayerCore, pod: n / s.t.cores, sw: n % s.t.cores}
}

// Bounce returns the switch at which path number n bounces. In a VL2 fabric
// that is a physical spine, at which several paths bounce.
func (s PathSet) Bounce(n int) NodeID {
	if s.rack != nil {
		return s.rack.list.paths[n].bounce
	}
	return s.t.id(s.bounce(n))
}

// Addr returns the outer destination address of path number n. No two paths
// of a pair that begin with the same uplink (From) have the same.
func (s PathSet) Addr(n int) netip.Addr {
	if s.rack != nil {
		return s.t.view.nodes[s.rack.list.paths[n].bounce].Addr
	}
	return s.t.addr(s.bounce(n))
}

// Paths returns the bouncing switches of a pair of hosts, both Valid: none within
// a rack, the pod's aggregation switches within a pod, the cores otherwise. It
// allocates nothing unless a link of the pair's is down.
func (t *Topology) Paths(src, dst NodeID) PathSet {
	if t.view != nil {
		s := t.view.paths(t, dst)
		s.use(s.Live)
		return s
	}
	a, b := t.position(src), t.position(dst)
	s := PathSet{t: t, src: a, dst: b}
	switch {
	case a.pod == b.pod && a.sw == b.sw:
		return s
	case a.pod == b.pod:
		s.Bases = t.bases[:1:1]
		s.Live = t.liveAggs(a, b)
	default:
		s.Bases = t.bases[:2:2]
		s.Live = t.liveCores(a, b)
	}
	if t.avoided != nil && b.layer == LayerHost {
		s.Live = t.avoided.leave(src, t.addr(b), s.Live)
	}
	s.use(s.Live)
	return s
}

// PathsTo is Paths to a host that HostAt has found, without those that it avoids.
func (t *Topology) PathsTo(src NodeID, host netip.Addr) PathSet {
	if t.view != nil {
		edge, _ := t.view.rackOf(host)
		s := t.view.paths(t, edge)
		s.use(t.avoided.leave(src, host, s.Live))
		return s
	}
	dst, _ := t.ByAddr(host)
	return t.Paths(src, dst)
}

// numbers are 0, 1, 2, ...: the live paths of all pairs that have them all.
var numbers = func() (list [MaxPaths]int) {
	for i := range list {
		list[i] = i
	}
	return list
}()

// liveAggs returns the aggregation switches over which two racks of a pod
// reach each other, ascending. The hosts' own links are left out: no choice of
// path avoids them.
func (t *Topology) liveAggs(a, b position) []int {
	if !t.down.any(t.edgeLink(a.pod, a.sw, 0), t.aggs) && !t.down.any(t.edgeLink(b.pod, b.sw, 0), t.aggs) {
		return numbers[:t.aggs:t.aggs]
	}
	live := make([]int, 0, t.aggs)
	for g := range t.aggs {
		if t.aggLive(a, b, g) {
			live = append(live, g)
		}
	}
	return live
}

// aggLive reports whether both racks reach the g-th aggregation switches of
// their pods.
func (t *Topology) aggLive(a, b position, g int) bool {
	return t.Live(t.edgeLink(a.pod, a.sw, g)) && t.Live(t.edgeLink(b.pod, b.sw, g))
}

// liveCores is liveAggs for racks of different pods: paths, ascending.
func (t *Topology) liveCores(a, b position) []int {
	n := t.aggs * t.cores
	upA, upB := t.coreLink(a.pod, 0, 0), t.coreLink(b.pod, 0, 0)
	if !t.down.any(t.edgeLink(a.pod, a.sw, 0), t.aggs) && !t.down.any(t.edgeLink(b.pod, b.sw, 0), t.aggs) &&
		!t.down.any(upA, n) && !t.down.any(upB, n) {
		return numbers[:n:n]
	}
	live := make([]int, 0, n)
	for g := range t.aggs {
		if !t.aggLive(a, b, g) {
			continue
		}
		// The links of an aggregation switch are numbered as the paths are.
		first, next := g*t.cores, (g+1)*t.cores
		if !t.down.any(upA+LinkID(first), t.cores) && !t.down.any(upB+LinkID(first), t.cores) {
			live = append(live, numbers[first:next]...)
			continue
		}
		for i := first; i < next; i++ {
			if t.Live(upA+LinkID(i)) && t.Live(upB+LinkID(i)) {
				live = append(live, i)
			}
		}
	}
	return live
}

// PathsOrAll is Paths or, if no path is live, all paths of the pair. A link may be
// reported down although it works: it flapped and is held back, or the report is old. A
// packet that is not sent is certainly lost.
func (t *Topology) PathsOrAll(src, dst NodeID) PathSet { return t.Paths(src, dst).OrAll() }

// OrAll returns the set or, if none of its paths is live, the set with all paths in use.
// See PathsOrAll.
func (s PathSet) OrAll() PathSet {
	if len(s.Live) > 0 || s.Direct() {
		return s
	}
	s.t = s.t.Whole()
	s.use(numbers[:s.Count():s.Count()])
	return s
}

// use makes paths the live ones.
func (s *PathSet) use(live []int) {
	s.Live, s.Weights = live, nil
	switch {
	case s.rack != nil:
		if s.rack.rates != nil {
			s.Weights = weigh(s.capacities())
		}
	case s.t.rates != nil && s.t.rates.uneven:
		s.Weights = weigh(s.capacities())
	}
}

// OnPaths reports whether a link lies on one of a pair's paths, live or not. The hosts'
// own links lie on none. It costs a few divisions at any size of the fabric. It finds the
// pairs that a link's failure affects.
func (t *Topology) OnPaths(l LinkID, src, dst NodeID) bool {
	if t.view != nil {
		return t.view.onPaths(l, dst)
	}
	a, b := t.position(src), t.position(dst)
	if a.pod == b.pod && a.sw == b.sw {
		return false
	}
	i := int(l) - t.numHosts()
	if i < 0 {
		return false
	}
	if i < t.numEdges()*t.aggs {
		rack := i / t.aggs
		return rack == a.rack(t) || rack == b.rack(t)
	}
	pod := (i - t.numEdges()*t.aggs) / (t.aggs * t.cores)
	return a.pod != b.pod && (pod == a.pod || pod == b.pod)
}

// rack numbers the edge switches of the fabric.
func (p position) rack(t *Topology) int { return p.pod*t.edges + p.sw }
