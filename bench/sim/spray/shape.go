package spray

import "weft/topology"

// shape is how a fabric's nodes and links are numbered, for arithmetic in place of
// look-ups.
type shape struct {
	hosts, perRack int
	racks, podRack int // edge switches, and those of a pod
	ups, cores     int // ports that lead up, of an edge and of an aggregation switch
	edge, agg      topology.NodeID
	core           topology.NodeID // the first that is above
	edgeUp, aggUp  topology.LinkID // the first link up from an edge and from an aggregation switch
}

func shapeOf(t *topology.Topology) shape {
	s := shape{hosts: t.NumHosts(), edge: topology.NodeID(t.NumHosts()), edgeUp: topology.LinkID(t.NumHosts())}
	for _, p := range t.Ports(s.edge) {
		if p.Up {
			s.ups++
		} else {
			s.perRack++
		}
	}
	s.racks = s.hosts / s.perRack
	s.agg = s.edge + topology.NodeID(s.racks)
	for _, p := range t.Ports(s.agg) {
		if p.Up {
			s.cores++
		} else {
			s.podRack++
		}
	}
	s.core = s.agg + topology.NodeID(s.racks/s.podRack*s.ups)
	s.aggUp = s.edgeUp + topology.LinkID(s.racks*s.ups)
	return s
}

// rack is the number of a host's edge switch, from 0.
func (s *shape) rack(host topology.NodeID) int { return int(host) / s.perRack }

// edgeOf is a host's edge switch.
func (s *shape) edgeOf(host topology.NodeID) topology.NodeID {
	return s.edge + topology.NodeID(s.rack(host))
}

// isEdge reports whether a switch is one.
func (s *shape) isEdge(sw topology.NodeID) bool { return sw < s.agg }

// uplink is the first link that leads up from an edge or aggregation switch; the
// others follow.
func (s *shape) uplink(sw topology.NodeID) topology.LinkID {
	if s.isEdge(sw) {
		return s.edgeUp + topology.LinkID(int(sw-s.edge)*s.ups)
	}
	return s.aggUp + topology.LinkID(int(sw-s.agg)*s.cores)
}

// aggOf is the aggregation switch that a port up of an edge switch leads to, where
// it is not a leaf-spine's.
func (s *shape) aggOf(edge topology.NodeID, port int) topology.NodeID {
	pod := int(edge-s.edge) / s.podRack
	return s.agg + topology.NodeID(pod*s.ups+port)
}

// upPort is the port by which a link is entered from below.
func upPort(l topology.LinkID) int32 { return 2 * int32(l) }

// downPort is the port by which a link is entered from above.
func downPort(l topology.LinkID) int32 { return upPort(l) + 1 }
