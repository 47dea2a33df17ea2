package sim

// lookahead is the number of events whose memory is read ahead.
const lookahead = 32

// lookAhead reads what the next events will need. In a fabric of thousands of hosts
// nearly every port, and at the ends of its way every packet and connection is a cache miss, and a
// processor can have many independent reads in flight. So there are three rounds: ports and packets, then the objects of packets that have arrived, then the data that these use.
func (s *simulation) lookAhead(events []event) {
	sum := int64(0)
	var ends [lookahead]uint32
	n := 0
	for i := range events {
		e := &events[i]
		if port := e.way.next(); port >= 0 {
			sum += s.ports[port].busy
		} else if e.load&kinds == arrived {
			sum += int64(s.packets.at(e.what).hops)
			ends[n] = e.what
			n++
		}
	}
	for _, i := range ends[:n] {
		p := s.packets.at(i)
		if p.kind > ack {
			continue
		}
		f := s.flows.at(p.flow)
		sum += int64(f.src) + f.timerAt + s.ports[up(p.dst())].busy
		if p.kind == data {
			sum += f.receiver.Touch() + int64(f.held.Touch())
		} else {
			sum += f.sender.Touch()
		}
	}
	for _, i := range ends[:n] {
		if p := s.packets.at(i); p.kind <= ack && s.hosts != nil {
			sum += int64(s.hosts.Touch(&s.flows.at(p.flow).path, p.kind == data))
		}
	}
	s.sum = sum
}
