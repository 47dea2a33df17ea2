package sim

// lookahead is for how many events memory is asked for at once.
const lookahead = 32

// lookAhead reads what the next events will need. Nearly every packet, port and
// connection is a cache miss at each of its events, in a fabric of thousands of
// hosts: of reads that do not depend on each other, nor branches on them, a
// processor has many under way at once. So there are three rounds: packets, what
// they lead to, and what that leads to.
func (s *simulation) lookAhead(events []event) {
	sum := int64(0)
	for _, e := range events {
		if e.kind == arrival {
			sum += int64(s.packets[e.what].hop)
		}
	}
	var ends [lookahead]*packet
	n := 0
	for _, e := range events {
		if e.kind != arrival {
			continue
		}
		p := &s.packets[e.what]
		switch {
		case p.hop < p.hops:
			sum += s.ports[max(p.route[p.hop], 0)].busy
		case p.kind == data:
			f := s.flows[p.flow]
			sum += int64(f.src) + f.receiver.Touch() + int64(f.tuple.SrcPort)
			ends[n] = p
			n++
		case p.kind == ack:
			f := s.flows[p.flow]
			sum += int64(f.src) + f.sender.Touch()
			ends[n] = p
			n++
		}
	}
	for _, p := range ends[:n] {
		f := s.flows[p.flow]
		host := f.src
		if p.kind == data {
			host = f.dst
		}
		sum += s.ports[up(host)].busy
		if s.hosts != nil {
			sum += int64(s.hosts.Touch(&f.path, p.kind == data))
		}
	}
	s.sum = sum
}
