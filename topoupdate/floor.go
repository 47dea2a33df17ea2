package topoupdate

import (
	"math"
	"slices"

	"weft/topology"
)

// floor bounds what unsigned messages may take away: a part of a host's paths to every
// rack always stays in use. Claims are accepted in the order in which they came. A claim
// that would leave fewer paths is held, and tried again when another one ends.
//
// In a Clos a path to a rack of another pod is a choice of an aggregation switch (group)
// and of one of that group's cores, so live paths are counted by group and pod. The cost
// of a claim grows with the racks that it concerns: every rack, for a link on the host's
// own side.
type floor struct {
	fabric *fabric
	groups int // aggregation switches of a pod
	edges  int // edge switches of a pod
	cores  int // of a group; 0: there is one pod
	pods   int
	rack   int // the host's own, of all
	pod    int // the host's own

	edgeDown []bool  // by rack and group: a link that counts as down
	coreDown []bool  // by pod, group and core
	through  []int16 // by pod and group: cores that are reached from here and from there
	need     []int32 // by rack: how many paths must stay

	taken map[topology.LinkID]bool // claims that are honoured
	held  map[topology.LinkID]bool // claims that are not
	queue []topology.LinkID        // held, in the order in which they are tried again
	again int                      // of queue are to be tried, since room has come about
}

// maxRetries bounds how many held claims are tried again at a time.
const maxRetries = 64

// newFloor begins with a baseline of which nothing is claimed. part is of the
// paths that are live in it, rounded up.
func newFloor(f *fabric, self topology.NodeID, part float64) *floor {
	edge := f.Topology.EdgeOf(self)
	l := &floor{fabric: f, groups: f.ports[topology.LayerEdge] - f.hostPorts, taken: make(map[topology.LinkID]bool), held: make(map[topology.LinkID]bool)}
	racks := int(f.start[topology.LayerAgg] - f.start[topology.LayerEdge])
	aggs := int(f.start[topology.LayerCore] - f.start[topology.LayerAgg])
	l.pods = aggs / l.groups
	l.edges = racks / l.pods
	l.cores = f.ports[topology.LayerAgg] - l.edges
	l.rack = int(edge - f.start[topology.LayerEdge])
	l.pod = l.rack / l.edges
	l.edgeDown = make([]bool, racks*l.groups)
	l.coreDown = make([]bool, aggs*l.cores)
	l.through = make([]int16, aggs)
	for _, id := range f.Down() {
		if bit := l.bit(id); bit != nil {
			*bit = true
		}
	}
	for pod := range l.pods {
		for g := range l.groups {
			l.count(pod, g)
		}
	}
	l.need = make([]int32, racks)
	for r := range l.need {
		l.need[r] = int32(math.Ceil(part * float64(l.live(r))))
	}
	return l
}

// place says which link it is: rack, group and -1, or pod, group and core. It is
// false for a host's, which is on no path.
func (l *floor) place(id topology.LinkID) (at, group, core int, ok bool) {
	k := l.fabric.Link(id)
	switch l.fabric.layer(k.A) {
	case topology.LayerEdge:
		return int(k.A - l.fabric.start[topology.LayerEdge]), k.PortA - l.fabric.hostPorts, -1, true
	case topology.LayerAgg:
		agg := int(k.A - l.fabric.start[topology.LayerAgg])
		return agg / l.groups, agg % l.groups, k.PortA - l.edges, true
	}
	return 0, 0, 0, false
}

func (l *floor) bit(id topology.LinkID) *bool {
	at, group, core, ok := l.place(id)
	switch {
	case !ok:
		return nil
	case core < 0:
		return &l.edgeDown[at*l.groups+group]
	}
	return &l.coreDown[(at*l.groups+group)*l.cores+core]
}

// count counts the cores of a group by which this pod and another reach each other.
func (l *floor) count(pod, group int) {
	here := l.coreDown[(l.pod*l.groups+group)*l.cores:][:l.cores]
	there := l.coreDown[(pod*l.groups+group)*l.cores:][:l.cores]
	n := int16(0)
	for c := range here {
		if !here[c] && !there[c] {
			n++
		}
	}
	l.through[pod*l.groups+group] = n
}

// live returns how many paths lead to a rack.
func (l *floor) live(rack int) (n int) {
	if rack == l.rack {
		return 0
	}
	pod := rack / l.edges
	for g := range l.groups {
		switch {
		case l.edgeDown[l.rack*l.groups+g] || l.edgeDown[rack*l.groups+g]:
		case pod == l.pod:
			n++
		default:
			n += int(l.through[pod*l.groups+g])
		}
	}
	return n
}

// mark sets whether a link counts as down, and returns the racks that it concerns:
// from the first to before the last.
func (l *floor) mark(id topology.LinkID, down bool) (from, to int) {
	at, group, core, ok := l.place(id)
	if !ok {
		return 0, 0
	}
	*l.bit(id) = down
	switch {
	case core < 0 && at != l.rack:
		return at, at + 1
	case core < 0:
		return 0, len(l.need)
	case at != l.pod:
		l.count(at, group)
		return at * l.edges, (at + 1) * l.edges
	}
	for pod := range l.pods {
		l.count(pod, group)
	}
	return 0, len(l.need)
}

// try honours a claim if enough paths remain.
func (l *floor) try(id topology.LinkID) bool {
	from, to := l.mark(id, true)
	for r := from; r < to; r++ {
		if int32(l.live(r)) < l.need[r] {
			l.mark(id, false)
			return false
		}
	}
	l.taken[id] = true
	return true
}

// force counts a link as down whatever remains: what was signed is believed.
func (l *floor) force(id topology.LinkID) {
	l.withdraw(id)
	l.mark(id, true)
	l.taken[id] = true
}

// claim is that a link is down.
func (l *floor) claim(id topology.LinkID) {
	if !l.taken[id] && !l.held[id] && !l.try(id) {
		l.held[id] = true
		l.queue = append(l.queue, id)
	}
}

// withdraw ends a claim.
func (l *floor) withdraw(id topology.LinkID) {
	switch {
	case l.held[id]:
		delete(l.held, id)
		i := slices.Index(l.queue, id)
		l.queue = slices.Delete(l.queue, i, i+1)
		l.again = min(l.again, len(l.queue))
	case l.taken[id]:
		delete(l.taken, id)
		l.mark(id, false)
		l.again = len(l.queue)
	}
}

// retry tries held claims again for which there may be room now, in turns, and
// appends those that count as down from now on.
func (l *floor) retry(down []topology.LinkID) []topology.LinkID {
	for range min(l.again, maxRetries) {
		id := l.queue[0]
		l.queue = l.queue[1:]
		l.again--
		if l.try(id) {
			delete(l.held, id)
			down = append(down, id)
		} else {
			l.queue = append(l.queue, id)
		}
	}
	return down
}
