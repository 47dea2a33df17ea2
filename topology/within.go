package topology

import (
	"cmp"
	"slices"
)

// Within compares two fabrics that are data, as one host has seen them at two times. It
// returns t with those links down that u has not. A rack is the same that has a prefix in
// common, whichever of its edge switches are known. Other nodes are the same by their names.
// more is true if u has links, or prefixes of racks, that t has not, or other addresses, SIDs,
// weights or another slowest rate.
func (t *Topology) Within(u *Topology) (now *Topology, more bool) {
	was, is := t.view, u.view
	has := make([]bool, len(was.links))
	for _, l := range is.links {
		low, known := was.byName[is.nodes[l.A].Name]
		if int(l.ID) >= is.down {
			low, known = was.sameRack(is.rack(l.A), low, known)
		}
		high, knownHigh := was.byName[is.nodes[l.B].Name]
		id, wired := was.byEnds[[2]NodeID{low, high}]
		if !known || !knownHigh || !wired {
			more = true
			continue
		}
		has[id] = true
	}
	for p, rack := range is.byNet {
		r := is.rack(rack)
		if p.IsSingleIP() && r.list == nil {
			continue // this host's own address, while not all edge switches of its rack are known
		}
		id, known := was.byNet[p]
		if same, _ := was.sameRack(r, 0, false); !known || same != id {
			more = true
		}
	}
	var down []LinkID
	for l := was.up; l < len(has); l++ {
		if !has[l] {
			down = append(down, LinkID(l))
		}
	}
	return t.Whole().Without(down...), more || was.differs(is)
}

// sameRack returns the node of v that is a rack of another view, by the first of its prefixes
// that v knows, or else what it is given.
func (v *view) sameRack(r *viewRack, id NodeID, known bool) (NodeID, bool) {
	for _, p := range r.prefixes {
		if id, ok := v.byNet[p]; ok {
			return id, true
		}
	}
	return id, known
}

// differs reports whether switches and racks that two views have in common differ.
func (v *view) differs(u *view) bool {
	for i := range u.nodes {
		n := &u.nodes[i]
		id, known := v.byName[n.Name]
		s := u.rack(n.ID)
		if s != nil {
			id, known = v.sameRack(s, id, known)
		}
		if !known {
			continue
		}
		r := v.rack(id)
		switch {
		case r == nil && s == nil:
			if v.nodes[id].Addr != n.Addr || v.sidsOf(id) != u.sidsOf(n.ID) {
				return true
			}
		case r != nil && s != nil && r.list != nil && s.list != nil:
			weights, slowest := v.weightsBeside(r, u, s)
			if w, slow := u.weightsBeside(s, v, r); !slices.Equal(weights, w) || slowest != slow {
				return true
			}
		}
	}
	return false
}

// weightsBeside returns the weights of a rack's paths that bounce where paths to a rack of
// another view do, in the order of the switches' names, and the rate of the slowest of these
// in Mbit/s, 0 if it is not known.
func (v *view) weightsBeside(r *viewRack, u *view, s *viewRack) (weights []int, slowest float64) {
	if r.rates == nil && s.rates == nil {
		return nil, r.rate
	}
	type path struct {
		name string
		rate float64
	}
	var list []path
	for i, p := range r.list.paths {
		name := v.nodes[p.bounce].Name
		if _, also := s.list.byBounce[u.byName[name]]; !also || r.list.byBounce[p.bounce] != i {
			continue
		}
		rate := r.rate
		if r.rates != nil {
			rate = r.rates[i]
		}
		slowest = slower(slowest, rate)
		list = append(list, path{name, cmp.Or(rate, 1)})
	}
	slices.SortFunc(list, func(a, b path) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	rates := make([]float64, len(list))
	for i := range list {
		rates[i] = list[i].rate
	}
	return weigh(rates), slowest
}
