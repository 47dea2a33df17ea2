package dataplane

import (
	"slices"
	"time"

	"weft/flowcell"
	"weft/luopan"
	"weft/topology"
)

// sampled chooses by what probes have measured (Luopan §3). Flows do not keep to one
// component: samples say more about paths.
type sampled struct {
	table  *luopan.Table
	device chooser // that carries choices out; nil if egress does
	told   uint64  // choices that it took
	untold uint64  // choices that it did not take
}

func (s *sampled) choose(p *pair, _ *flowcell.Packet, _ []int, _ int, now time.Duration) int {
	if p.four == 0 {
		return s.chooseUnasked(p, now)
	}
	path, ok := s.table.Choose(uint32(p.rack.id), p.four, p.group.Live, now)
	if s.device != nil && !p.six {
		s.tell(p.rack, path, ok, now)
	}
	return path
}

// chooseUnasked is choose for a host that cannot be asked: samples are IPv4, and it has only
// an IPv6 address. What others of its rack have said counts, or else the policy's Rule.
func (s *sampled) chooseUnasked(p *pair, now time.Duration) int {
	if path, _, ok := s.table.Best(uint32(p.rack.id), now); ok && p.group.Has(path) {
		return path
	}
	if path, ok := p.data.Next(0); ok {
		return path
	}
	return -1
}

// tell makes the device take the same path, before it sees the unit. While no samples are
// in use, the device chooses for itself, and this Host does not know which paths it
// takes. While samples are in use, the device is told of every choice, even one that no
// sample has decided: otherwise it would keep the last path that it was told.
func (s *sampled) tell(r *rack, path int, decided bool, now time.Duration) {
	until := r.told.until
	if decided {
		_, until, _ = s.table.Best(uint32(r.id), now)
	}
	if until <= now || r.told.path == path && r.told.until == until {
		return
	}
	if err := s.device.Choose(r.prefix, path, until-now); err != nil {
		s.untold++
		return
	}
	s.told++
	r.told.path, r.told.until = path, until
}

func (s *sampled) sent(p *pair, path, bytes int, _ time.Duration) {
	s.table.Sent(uint32(p.rack.id), path, bytes)
}

func (s *sampled) know(_ time.Duration, add func(topology.NodeID, uint32, Congestion)) {
	for _, d := range s.table.Destinations() {
		c := Congestion{Metric: d.Metric.String(), RTT: d.RTT, Expiry: d.Expiry, Unsampled: d.Unsampled}
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
			choices := c.Paths[at].Choices
			c.Paths[at] = PathOf(m, i == 0)
			c.Paths[at].Choices = choices
		}
		add(topology.NodeID(d.Destination), 0, c)
	}
}
