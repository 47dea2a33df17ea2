package sim

// lookahead is the number of events whose memory is asked for at once.
const lookahead = 32

// ahead is packets that will arrive soon.
type ahead struct {
	packets [lookahead]uint32
	n       int
}

// lookAhead reads what coming events will need. In a fabric of thousands of hosts nearly every
// port, and at the ends of its way every packet and connection is a cache miss, and a processor
// can have many independent reads in flight. What is needed of an arriving packet is found in
// three rounds: the packet, its flow, what the flow points at. The rounds of three groups of
// events are done together, so that a group waits for memory once.
func (s *simulation) lookAhead(events []event) {
	sum := int64(0)
	for _, i := range s.flowsKnown.packets[:s.flowsKnown.n] {
		if p := s.packets.at(i); p.kind <= ack && s.hosts != nil {
			sum += int64(s.hosts.Touch(&s.flows.at(p.flow).path, p.kind == data))
		}
	}
	for _, i := range s.packetsKnown.packets[:s.packetsKnown.n] {
		p := s.packets.at(i)
		if p.kind > ack {
			continue
		}
		f := s.flows.at(p.flow)
		sum += int64(f.src) + f.timerAt
		if p.kind == data {
			sum += f.receiver.Touch() + int64(f.held.Touch()) + s.ports[up(p.dst())].busy
		} else {
			sum += f.sender.Touch() + s.ports[up(p.dst())].busy
		}
	}
	s.flowsKnown = s.packetsKnown
	n := 0
	for i := range events {
		e := &events[i]
		if port := e.way.next(); port >= 0 {
			sum += s.ports[port].busy
		} else if e.load&kinds == arrived {
			sum += int64(s.packets.at(e.what).hops)
			s.packetsKnown.packets[n&(lookahead-1)] = e.what
			n++
		}
	}
	s.packetsKnown.n = n
	s.sum = sum
}

// lookAtBatch looks ahead from the beginning of a batch. It returns how many events have been
// seen.
func (s *simulation) lookAtBatch(batch []event) int {
	s.packetsKnown.n = 0
	first, second := min(lookahead, len(batch)), min(2*lookahead, len(batch))
	s.lookAhead(batch[:first])
	s.lookAhead(batch[first:second])
	return second
}
