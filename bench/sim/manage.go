package sim

import "weft/bench/sim/aqm"

// manage gives a port its discipline.
func (s *simulation) manage(port, place int, by func(port, place int) aqm.Discipline) {
	d := by(port, place)
	if d == nil {
		return
	}
	s.class[s.ports[port].class&^1].managed = true // a dead link's has no room anyway
	if s.disciplines == nil {
		s.disciplines = make([]aqm.Discipline, len(s.ports))
	}
	s.disciplines[port] = d
}

// admit asks a port's discipline about a packet, and reports whether it passes. It may mark it,
// in its load.
func (s *simulation) admit(port int32, i uint32, load *uint32, backlog int64, c *class) bool {
	d := s.disciplines[port]
	if d == nil {
		return true
	}
	p := s.packets.at(i)
	switch d.Arrive(aqm.Arrival{
		Now: s.clock(), Flow: s.ends(p), Bytes: int(p.bytes), Queue: int(backlog / c.byteTime), Capable: *load&capable != 0,
	}) {
	case aqm.Drop:
		return false
	case aqm.Mark:
		*load |= marked
		c.marks++
	}
	return true
}

// ends are those of a packet's flow, as disciplines tell flows apart.
func (s *simulation) ends(p *packet) uint64 {
	src := int32(0)
	switch p.kind {
	case data:
		src = s.flows.at(p.flow).src
	case ack:
		src = s.flows.at(p.flow).dst
	case open:
		src = int32(p.flow)
	}
	return uint64(src)<<32 | uint64(p.dst())
}
