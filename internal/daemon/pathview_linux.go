package daemon

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"weft/internal/probe"
	"weft/liveness"
	"weft/topology"
)

// pathProber is *prober.Prober, as far as a status asks it. Its methods are safe for
// concurrent use, also after it was closed.
type pathProber interface {
	Self() netip.Addr
	Paths() []liveness.PathHealth
	Suspects() []liveness.Suspect
	Stats() probe.Stats
}

// probing is what probes: by the carrier in use, and by that of IPv6. nil: nothing.
type probing struct{ used, six pathProber }

// basis is all that a pathView follows from. It is copied under the owner's lock. What it
// points to may be read without.
type basis struct {
	probing
	topology, topology6 *topology.Topology
	carriage, carriage6 *liveness.Carriage
}

// pathView is what a status says of links, racks and paths. It does not change.
type pathView struct {
	down, avoided []string
	ends          [][2]string // of down
	racks         []RackStatus
	reach         *ReachStatus
	faulty        []PathStatus // see FailureStatus.Paths
	blamed        []BlameStatus
	late          *LateStatus
	paths         []liveness.PathHealth // of both families
}

// viewTime is how long a pathView is told to all who ask. Anybody may ask all the time, and a
// view of 150,000 paths takes some tenths of a second.
const viewTime = time.Second

// pathViews makes a pathView when somebody asks, at most one at a time. Its methods are safe
// for concurrent use. The zero value is ready for use.
type pathViews struct {
	keep time.Duration // of a view; 0: viewTime

	mu   sync.Mutex // held while a view is made: others who ask wait for that one
	last *pathView  // nil: none, or too old
	of   basis      // of last
}

// get returns the view of b, which is at most viewTime old.
func (v *pathViews) get(b basis) *pathView {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil || v.of != b {
		view := b.view()
		v.last, v.of = view, b
		keep := v.keep
		if keep == 0 {
			keep = viewTime
		}
		time.AfterFunc(keep, func() { v.forget(view) })
	}
	return v.last
}

// forget frees the memory of a view that is too old.
func (v *pathViews) forget(old *pathView) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == old {
		v.last, v.of = nil, basis{}
	}
}

// view makes a view. It asks each prober for its paths once.
func (b basis) view() *pathView {
	t := b.topology
	v := &pathView{down: []string{}, ends: [][2]string{}, avoided: avoided(t), racks: b.rackStatus()}
	for _, l := range t.Down() {
		v.down = append(v.down, t.LinkName(l))
		link := t.Link(l)
		v.ends = append(v.ends, [2]string{t.Node(link.A).Name, t.Node(link.B).Name})
	}
	var paths6 []liveness.PathHealth
	if b.six != nil {
		paths6 = b.six.Paths()
	}
	if b.used != nil {
		self := b.used.Self()
		v.paths = b.used.Paths()
		v.blamed = withDead(t, b.blamed(v.paths, paths6))
		v.late = later(t, self, v.paths)
		v.faulty = faulty(t, self, v.paths, v.blamed)
		v.reach = b.reach(self, v.paths)
	}
	v.paths = append(v.paths, paths6...)
	return v
}

// blamed says what hurts packets by the paths of both families. It looks at maxEvidence paths.
func (b basis) blamed(paths, paths6 []liveness.PathHealth) []BlameStatus {
	n, n6 := maxEvidence, maxEvidence
	if len(paths6) == 0 || b.topology6 == nil {
		return blamed(b.topology, b.used.Self(), paths, b.used.Suspects(), n)
	}
	if all := len(paths) + len(paths6); all > maxEvidence {
		n = maxEvidence * len(paths) / all
		n6 = maxEvidence - n
	}
	return blamedBoth(blamed(b.topology, b.used.Self(), paths, b.used.Suspects(), n),
		blamed(b.topology6, b.six.Self(), paths6, b.six.Suspects(), n6))
}

// avoided names the paths that one host alone is not sent to by.
func avoided(t *topology.Topology) (names []string) {
	for _, a := range t.Avoided() {
		if len(names) == maxPathStatus {
			break
		}
		via := t.PathsTo(a.Src, a.Dst).Bounce(a.Path)
		names = append(names, t.HostName(a.Dst)+" by "+t.Node(via).Name)
	}
	return names
}

// rackStatus says how racks are reached that are not reached as they should be.
func (b basis) rackStatus() (all []RackStatus) {
	add := func(t *topology.Topology, by *liveness.Carriage, six bool) {
		for _, edge := range by.Racks() {
			r := RackStatus{Rack: t.Node(edge).Name, Plain: by.Plain(edge), MTU: by.MTU(edge), Why: by.Why(edge)}
			if list := t.RackPrefixesOf(edge, six); len(list) > 0 && (r.Plain || r.Why != "") && len(all) < maxPathStatus {
				r.Prefix = list[0].String()
				all = append(all, r)
			}
		}
	}
	add(b.topology, b.carriage, false)
	add(b.topology6, b.carriage6, true)
	return all
}

// reach says how the racks are reached.
func (b basis) reach(self netip.Addr, paths []liveness.PathHealth) *ReachStatus {
	if b.carriage == nil {
		return nil
	}
	toHosts := make([]liveness.PathHealth, 0, len(paths))
	for _, p := range paths {
		if p.Dst != self {
			toHosts = append(toHosts, p)
		}
	}
	s := &ReachStatus{InUse: rackPaths(b.topology, toHosts, b.carriage.Plain)}
	s.Unnamed = max(0, len(s.InUse)-maxRackPaths)
	s.InUse = s.InUse[:len(s.InUse)-s.Unnamed]
	s.count(b.carriage)
	s.count(b.carriage6)
	return s
}

// maxPathStatus bounds the paths in a status.
const maxPathStatus = 1000

// faulty lists the bouncing switches, and those paths that have a fault, which what is blamed
// may explain.
func faulty(t *topology.Topology, self netip.Addr, paths []liveness.PathHealth, by []BlameStatus) (list []PathStatus) {
	var listed []liveness.PathHealth
	for _, p := range paths {
		if len(list) == maxPathStatus {
			break
		}
		if p.State == liveness.Up && p.Dst != self {
			continue
		}
		one := PathStatus{To: t.HostName(p.Dst), Via: p.Via.String(), State: string(p.State),
			Why: p.Why, RTT: milliseconds(p.RTT), RTT50: milliseconds(p.RTT50), RTT99: milliseconds(p.RTT99), Loss: p.Loss, Lately: latelyOf(p.Lately), from: p.From}
		if p.Dst == self {
			one.Bounce = bounceName(t, p.Via)
		}
		list, listed = append(list, one), append(listed, p)
	}
	explain(t, self, by, listed, list)
	return list
}

// tell fills in what the view knows. The status shares what it has no reason to change.
func (v *pathView) tell(s *Status) {
	s.Racks, s.Reach = v.racks, v.reach
	f := s.Failures
	f.Down, f.Ends, f.Avoided, f.Blamed, f.Late, f.Paths = v.down, v.ends, v.avoided, v.blamed, v.late, slices.Clone(v.faulty)
	f.nameUplinks(s.Uplinks)
}
