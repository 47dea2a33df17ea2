package topology

import "slices"

// Within compares two fabrics that are data, as one host has seen them at two times. It
// returns t with those links down that u has not, by the names of their ends. more is true
// if u has links, or prefixes of racks, that t has not, or other addresses, SIDs or weights.
func (t *Topology) Within(u *Topology) (now *Topology, more bool) {
	has := make([]bool, len(t.view.links))
	for _, l := range u.view.links {
		a, knownA := t.view.byName[u.view.nodes[l.A].Name]
		b, knownB := t.view.byName[u.view.nodes[l.B].Name]
		id, known := t.view.byEnds[[2]NodeID{a, b}]
		if !knownA || !knownB || !known {
			more = true
			continue
		}
		has[id] = true
	}
	for p, rack := range u.view.byNet {
		if id, known := t.view.byNet[p]; !known || t.view.nodes[id].Name != u.view.nodes[rack].Name {
			more = true
		}
	}
	var down []LinkID
	for l := t.view.up; l < len(has); l++ {
		if !has[l] {
			down = append(down, LinkID(l))
		}
	}
	return t.Whole().Without(down...), more || t.view.differs(u.view)
}

// differs reports whether switches and racks that two views have in common differ.
func (v *view) differs(u *view) bool {
	for i := range u.nodes {
		n := &u.nodes[i]
		id, known := v.byName[n.Name]
		if !known {
			continue
		}
		r, s := v.rack(id), u.rack(n.ID)
		switch {
		case r == nil && s == nil:
			if v.nodes[id].Addr != n.Addr || v.sidsOf(id) != u.sidsOf(n.ID) {
				return true
			}
		case r != nil && s != nil && r.list != nil && s.list != nil:
			if !slices.Equal(v.weightsBeside(r, u, s), u.weightsBeside(s, v, r)) {
				return true
			}
		}
	}
	return false
}

// weightsBeside returns the weights of a rack's paths that bounce where paths to a rack of
// another view do, in the order of the switches' names.
func (v *view) weightsBeside(r *viewRack, u *view, s *viewRack) []int {
	if r.rates == nil && s.rates == nil {
		return nil
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
		rate := 1.0
		if r.rates != nil {
			rate = r.rates[i]
		}
		list = append(list, path{name, rate})
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
	return weigh(rates)
}
