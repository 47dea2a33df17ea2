package blame

import (
	"net/netip"
	"slices"

	"weft/liveness"
	"weft/topology"
)

// Evidence puts the places of each path beside what is known of it: paths as a
// liveness.Watcher of the host self has them, in the topology t that it watches. Paths that t
// does not have are left out. It keeps nothing of paths.
func Evidence(t *topology.Topology, self topology.NodeID, paths []liveness.PathHealth) []Path {
	list := make([]Path, 0, len(paths))
	for i, places := range Places(t, self, paths) {
		if places != nil && paths[i].State != liveness.Mute { // whose host answers nothing, by no path
			list = append(list, Path{places, paths[i].Dst, paths[i].Lately})
		}
	}
	return list
}

// Places returns what each of the paths crosses, in their order; nil for one that t does not
// have. See Evidence.
func Places(t *topology.Topology, self topology.NodeID, paths []liveness.PathHealth) [][]Place {
	e := evidencer{topology: t, self: self, sets: map[topology.NodeID]topology.PathSet{}}
	e.ups = e.waysUp(paths)
	list := make([][]Place, 0, len(paths))
	for i := range paths {
		list = append(list, e.places(&paths[i]))
	}
	return list
}

type evidencer struct {
	topology *topology.Topology
	self     topology.NodeID
	sets     map[topology.NodeID]topology.PathSet // by rack
	ups      map[way][]topology.LinkID
}

// way is a way up: a bouncing address, and the uplink of the host that it begins with.
type way struct {
	via  netip.Addr
	from int
}

func (e *evidencer) paths(rack topology.NodeID) topology.PathSet {
	set, ok := e.sets[rack]
	if !ok {
		set = e.topology.PathsOrAll(e.self, rack)
		e.sets[rack] = set
	}
	return set
}

// waysUp returns the links of the ways that boomerangs take. A way is the beginning of paths
// to some rack, and few racks have all ways.
func (e *evidencer) waysUp(paths []liveness.PathHealth) map[way][]topology.LinkID {
	wanted := map[way][]topology.LinkID{}
	for i := range paths {
		if p := &paths[i]; e.boomerang(p) {
			wanted[way{p.Via, p.From}] = nil
		}
	}
	missing := len(wanted)
	for rack := range e.topology.Racks() {
		if missing == 0 {
			break
		}
		set := e.paths(rack)
		for n := range set.Count() {
			w := way{set.Addr(n), set.From(n)}
			if links, ok := wanted[w]; ok && links == nil {
				wanted[w], _ = set.Halves(n)
				missing--
			}
		}
	}
	return wanted
}

// boomerang reports whether a path is that of a boomerang: it ends at the host itself.
func (e *evidencer) boomerang(p *liveness.PathHealth) bool {
	return p.Dst == e.topology.Node(e.self).Addr
}

// places returns what a path crosses; nil if it is no path of the topology.
func (e *evidencer) places(p *liveness.PathHealth) []Place {
	var links []topology.LinkID
	var places []Place
	if e.boomerang(p) {
		links = e.ups[way{p.Via, p.From}]
	} else {
		host, rack, ok := e.topology.HostAt(p.Dst)
		if !ok {
			return nil
		}
		set := e.paths(rack)
		if uint(p.Path) >= uint(set.Count()) {
			return nil
		}
		up, down := set.Halves(p.Path)
		links = slices.Concat(up, down)
		places = append(places, Place{Kind: Host, Host: host})
	}
	if len(links) == 0 {
		return nil
	}
	own := e.topology.EdgeOf(e.self)
	for _, l := range links {
		if l < 0 {
			continue // nobody knows by which link a way begins
		}
		link := e.topology.Link(l)
		places = append(places, Place{Kind: Link, Link: l})
		for _, n := range [...]topology.NodeID{link.A, link.B} {
			if at := (Place{Kind: Switch, Node: n}); n != own && !slices.Contains(places, at) {
				places = append(places, at)
			}
		}
	}
	return places
}
