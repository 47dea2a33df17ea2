package stack

import (
	"encoding/binary"
	"slices"
	"time"

	"weft/luopan"
	"weft/topology"
)

// sampled chooses by what probes have measured (Luopan §3). A flow does not keep
// to a symmetric group: samples tell more.
type sampled struct {
	table  *luopan.Table
	device ChoiceDevice // that carries choices out; nil if egress does
	untold uint64       // choices that it did not take
}

func (s *sampled) choose(p *pair, _ []int, _ int, now time.Duration) int {
	host := p.dst.IP().As4()
	path, ok := s.table.Choose(uint32(p.rack.id), binary.BigEndian.Uint32(host[:]), p.group.paths, now)
	if ok && s.device != nil {
		s.tell(p.rack, path, now)
	}
	return path
}

// tell has the device take the same path, before it gets to see the unit.
func (s *sampled) tell(r *rack, path int, now time.Duration) {
	_, until, ok := s.table.Best(uint32(r.id), now)
	if !ok || r.told.path == path && r.told.until == until {
		return
	}
	if err := s.device.Choose(r.prefix, path, until-now); err != nil {
		s.untold++
		return
	}
	r.told.path, r.told.until = path, until
}

func (s *sampled) sent(p *pair, path, bytes int, _ time.Duration) {
	s.table.Sent(uint32(p.rack.id), path, bytes)
}

func (s *sampled) know(_ time.Duration, add func(topology.NodeID, Congestion)) {
	for _, d := range s.table.Destinations() {
		c := Congestion{Metric: d.Metric.String(), RTT: d.RTT, Expiry: d.Expiry, Random: d.Random}
		if len(d.Samples) == 0 {
			c.Metric = ""
		}
		for path, n := range d.Choices {
			c.Paths = append(c.Paths, PathCongestion{Path: path, Choices: n})
		}
		for i, m := range d.Samples {
			at := slices.IndexFunc(c.Paths, func(p PathCongestion) bool { return p.Path == m.Path })
			if at < 0 {
				at = len(c.Paths)
				c.Paths = append(c.Paths, PathCongestion{Path: m.Path})
			}
			p := &c.Paths[at]
			p.Known, p.Best, p.Age = true, i == 0, m.Age
			p.Queue, p.Meters, p.Marked, p.RTT, p.Sent = m.Queue, m.Meters, m.Marked, m.RTT, m.Sent
		}
		add(topology.NodeID(d.Destination), c)
	}
}
