package capture

import (
	"net/netip"

	"weft/encap"
	"weft/internal/paths"
	"weft/topology"
)

// maxRoutes is how many answers a Topology remembers.
const maxRoutes = 1 << 16

// Topology names the paths of a fabric. It is not safe for concurrent use.
type Topology struct {
	t     *topology.Topology
	known map[route]named
}

type route struct{ src, dst, via netip.Addr }

type named struct {
	number int
	bounce string
	ok     bool
}

// NewTopology returns a Fabric. t may be nil: then no path is known.
func NewTopology(t *topology.Topology) *Topology {
	return &Topology{t: t, known: make(map[route]named)}
}

// Path is Fabric's.
func (f *Topology) Path(src, dst, via netip.Addr) (number int, bounce string, ok bool) {
	if f.t == nil {
		return 0, "", false
	}
	k := route{src, dst, via}
	n, seen := f.known[k]
	if !seen {
		n = f.find(k)
		if len(f.known) >= maxRoutes {
			clear(f.known)
		}
		f.known[k] = n
	}
	return n.number, n.bounce, n.ok
}

// find looks through the paths of a pair.
func (f *Topology) find(k route) (n named) {
	from, ok := f.t.ByAddr(topology.Addr4(k.src))
	if !ok {
		if from, ok = f.t.ByAddr(k.src); !ok {
			return n
		}
	}
	_, edge, ok := f.t.HostAt(topology.Addr4(k.dst))
	if !ok {
		if _, edge, ok = f.t.HostAt(k.dst); !ok {
			return n
		}
	}
	set := f.t.Paths(from, edge)
	if set.Direct() {
		return n
	}
	if i, ok := set.Via(k.via); ok {
		return named{i, f.name(set, i), true}
	}
	if !k.via.Is6() || paths.CheckSRv6(f.t) != nil {
		return n
	}
	for i := range set.Count() {
		if !f.t.Computed() {
			for _, six := range []bool{false, true} {
				if sid, ok := set.SID(i, six); ok && sid == k.via {
					return named{i, f.name(set, i), true}
				}
			}
			continue
		}
		sids, err := encap.SIDs(set.Choices(i))
		if err == nil && sameWay(sids, k.via) {
			return named{i, f.name(set, i), true}
		}
	}
	return n
}

// sameWay compares two SRv6 destinations but for the family inside.
func sameWay(a, b netip.Addr) bool {
	x, errX := encap.ParseSIDs(a)
	y, errY := encap.ParseSIDs(b)
	if errX != nil || errY != nil || len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// name is that of the switch where a path turns.
func (f *Topology) name(set topology.PathSet, path int) string {
	return f.t.Node(set.Bounce(path)).Name
}
