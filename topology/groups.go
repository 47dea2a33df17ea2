package topology

// Group is a symmetric component of a pair's live paths: with any traffic, the
// queues along its paths are equally long (DRILL §3.4.1).
type Group struct {
	Paths   []int // path numbers, ascending
	Weights []int // as in PathSet, within the group
	Weight  int   // the group's aggregate capacity, in lowest terms among the pair's
}

// Weighted is PathSet's Weighted for the paths of the group.
func (g Group) Weighted() []int { return repeat(g.Paths, g.Weights) }

// Groups returns the symmetric components of a pair's live paths, in the order of their
// first paths. There is one if all paths are symmetric, none within a rack or if no path
// is live. The result depends on dead links and rates in the whole fabric, not only on
// the pair's own links. For many pairs use Quiver.
func (t *Topology) Groups(src, dst NodeID) []Group {
	if t.view != nil || t.symmetric() {
		return t.Paths(src, dst).groups()
	}
	return t.Quiver().Groups(src, dst)
}

// symmetric reports whether no two paths of any pair can differ.
func (t *Topology) symmetric() bool {
	return t.down == nil && (t.rates == nil || !t.rates.uneven)
}

// groups takes paths of one weight for symmetric. Where the fabric is data, no more is known.
func (s PathSet) groups() (groups []Group) {
	if len(s.Live) == 0 {
		return nil
	}
	if s.rack == nil || s.Weights == nil {
		return []Group{{Paths: s.Live, Weights: s.Weights, Weight: 1}}
	}
	at := make(map[int]int)
	for i, n := range s.Live {
		w := s.Weights[i]
		k, ok := at[w]
		if !ok {
			k = len(groups)
			at[w] = k
			groups = append(groups, Group{})
		}
		groups[k].Paths, groups[k].Weights = append(groups[k].Paths, n), append(groups[k].Weights, w)
	}
	settle(groups)
	return groups
}

// score tells links apart as DRILL's score does: two paths are symmetric if their links
// have equal scores. A link's labels are the pairs of racks whose paths use it, each with
// the path's capacity factor there. In a Clos they are a product of two sets: of sources
// with their factors, and of destinations. The destinations of a pair's last link and the
// sources of its first link are the same on all its paths.
type score struct {
	first    sum    // destinations
	up, down [2]sum // sources, destinations; zero within a pod
	last     sum    // sources
}

// Groups is Topology's Groups.
func (q *Quiver) Groups(src, dst NodeID) []Group {
	set := q.t.Paths(src, dst)
	if q.t.view != nil || len(set.Live) < 2 || q.t.symmetric() {
		return set.groups()
	}
	index := make(map[score]int)
	var groups []Group
	var sc score
	group := -1
	for i, n := range set.Live {
		if g := set.group(n); g != group {
			group = g
			sc.first, sc.last = q.reach(set.src.pod, g), q.sourcesLast(set.dst, g)
		}
		q.scoreCore(&sc, set, n)
		at, ok := index[sc]
		if !ok {
			at = len(groups)
			index[sc] = at
			groups = append(groups, Group{})
		}
		g := &groups[at]
		g.Paths = append(g.Paths, n)
		weight := 1
		if set.Weights != nil {
			weight = set.Weights[i]
		}
		g.Weights = append(g.Weights, weight)
	}
	settle(groups)
	return groups
}

// settle works out the weights of groups, whose Weights are those of the set.
func settle(groups []Group) {
	total := make([]int, len(groups))
	for i := range groups {
		for _, w := range groups[i].Weights {
			total[i] += w
		}
		groups[i].Weights = lowest(groups[i].Weights)
	}
	if total = lowest(total); total == nil {
		for i := range groups {
			groups[i].Weight = 1
		}
		return
	}
	for i := range groups {
		groups[i].Weight = total[i]
	}
}

// group returns which of its pod's aggregation switches a path goes up by.
func (s PathSet) group(n int) int {
	if via := s.bounce(n); via.layer == LayerCore {
		return via.pod
	}
	return n
}

// scoreCore sets what a score says of the links of a path's core, if it has
// one.
func (q *Quiver) scoreCore(sc *score, s PathSet, n int) {
	via := s.bounce(n)
	if via.layer != LayerCore {
		return
	}
	g, c := via.pod, via.sw
	sc.up = [2]sum{q.sourcesUp(s.src.pod, g, c), q.under[n].minus(q.below(s.src.pod, g))}
	sc.down = [2]sum{q.sourcesDown(s.dst.pod, g, c), q.below(s.dst.pod, g)}
}
