package spray

import (
	"slices"
	"time"

	"weft/topology"
)

// localSampling is switches that send each flowcell by the port with the shortest
// queue (Luopan §4.1).
type localSampling struct {
	oblivious
	loads loads
	cells cellTables
}

func (s *localSampling) Up(sw topology.NodeID, _ int32, p *Packet, now time.Duration) int {
	ports := s.of(sw, p)
	if len(ports) == 0 {
		return -1
	}
	e, begins := s.cells.of(sw, p, now)
	if begins || !slices.Contains(ports, int(e.port)) {
		s.cells.begin(e, p, int16(s.shortest(sw, ports)))
	}
	return int(e.port)
}

// shortest is the port with the shortest queue, a random one among equals.
func (s *localSampling) shortest(sw topology.NodeID, ports []int) int {
	first := s.shape.uplink(sw)
	best, least, equals := -1, 0., 0
	for _, port := range ports {
		load := s.loads.of(first + topology.LinkID(port))
		switch {
		case best < 0 || load < least:
			best, least, equals = port, load, 1
		case load == least:
			if equals++; s.below(equals) == 0 {
				best = port
			}
		}
	}
	return best
}
