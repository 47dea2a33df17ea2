package topology

// Within compares two fabrics that are data, as one host has seen them at two times. It
// returns t with those links down that u has not. A rack is the same that has a prefix in
// common, whichever of its edge switches are known. Other nodes are the same by their names.
// more is true if u has links, or prefixes of racks, that t has not.
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
	return t.Whole().Without(down...), more
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
