package topology

// Uplink is a host's way to one of its edge switches.
type Uplink struct {
	Port string // the host's device, "" where the Graph does not say
	Edge NodeID
}

// Uplinks returns those of this host where the fabric is data, one for each edge switch that
// it is wired to. The caller must not write to the list. It is nil where the fabric is
// computed, in which each host has one.
func (t *Topology) Uplinks() []Uplink {
	if t.view == nil {
		return nil
	}
	return t.view.homes
}

// From returns which of the host's Uplinks path number n begins with, 0 where the fabric is
// computed.
func (s PathSet) From(n int) int {
	if s.rack == nil {
		return 0
	}
	return s.rack.list.paths[n].from
}

// Beyond returns the links that lead on from one of the host's Uplinks. With all of them down
// no path begins with that uplink.
func (t *Topology) Beyond(uplink int) (links []LinkID) {
	for l := t.view.up; l < t.view.down; l++ {
		if t.view.links[l].A == t.view.homes[uplink].Edge {
			links = append(links, LinkID(l))
		}
	}
	return links
}
