package sim

// fail takes links down, or up again. What waits for a link that goes down, or is on
// it, is lost. A port that comes back is empty.
func (s *simulation) fail(f *Failure, number uint32) {
	s.wheel.push(event{at: s.now + ps(f.Told), what: number, load: news})
	failed := make(map[int32]bool)
	for _, l := range f.Links {
		for _, port := range []int32{up(int32(l)), down(int32(l))} {
			t := &s.ports[port]
			dead := t.class&1 != 0
			if dead != f.Up {
				continue // is so already
			}
			t.class ^= 1
			t.busy = s.now
			failed[port] = !f.Up
		}
	}
	if f.Up {
		return
	}
	s.wheel.each(func(e *event) {
		if !e.isPacket() || e.load&gone != 0 {
			return
		}
		if port := s.on(e); failed[port] {
			s.ports[port].drops++
			s.class[s.ports[port].class].drops++
			e.load |= gone
		}
	})
}

// on returns the port that a packet has left last.
func (s *simulation) on(e *event) int32 {
	p := s.packets.at(e.what)
	if n := passed(e.load); n > 1 {
		return p.route[n-2]
	}
	switch p.kind {
	case data:
		return up(s.flows.at(p.flow).src)
	case ack:
		return up(s.flows.at(p.flow).dst)
	case open:
		return up(int32(p.flow))
	case probe:
		return up(int32(s.probing.out[p.flow].Owner))
	}
	return up(int32(s.probing.out[p.flow].Dst))
}

// learn tells hosts or switches of links that have failed or come back.
func (s *simulation) learn(f *Failure) {
	if f.Up {
		s.known = s.known.With(f.Links...)
	} else {
		s.known = s.known.Without(f.Links...)
	}
	if s.hosts != nil {
		s.hosts.SetTopology(s.known)
	} else {
		s.switches.SetTopology(s.known)
	}
}
