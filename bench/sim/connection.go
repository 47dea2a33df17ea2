package sim

import (
	"time"

	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
)

// connection is one of several subflows, each of which is a flow (tcp.Config.Subflows).
type connection struct {
	subflows []uint32
	group    tcp.Group
	receiver tcp.Receiver  // of the data of all
	end      time.Duration // of delivery, 0 before
	kept     *kept         // on whose turn its flow is; nil: of none
}

// beginConnection begins one now.
func (s *simulation) beginConnection(asked workload.Flow, k *kept) {
	c := &connection{kept: k}
	c.group.Start(&s.tcp, asked.Bytes)
	c.receiver.Start(&s.tcp, asked.Bytes)
	for range s.tcp.Subflows {
		i, f := s.newFlow(asked)
		if s.config.SpreadSubflows {
			s.spread(c, f)
		}
		c.group.Add(&f.sender)
		f.receiver.Start(&s.tcp, 0)
		f.whole = c
		c.subflows = append(c.subflows, i)
	}
	s.recall(c)
	s.pumpAll(c)
}

// triesPerPath bounds how many ports spread tries.
const triesPerPath = 64

// spread gives a new subflow ports by which its path is none that an earlier one has, as
// long as there are others.
func (s *simulation) spread(c *connection, f *flow) {
	path, paths := s.hosts.PathOfFlow(&f.path)
	for range triesPerPath * paths {
		same := 0
		for _, i := range c.subflows {
			if taken, _ := s.hosts.PathOfFlow(&s.flows.at(i).path); taken == path {
				same++
			}
		}
		if same <= len(c.subflows)/paths {
			return
		}
		s.hosts.Close(&f.path)
		s.name(f)
		path, _ = s.hosts.PathOfFlow(&f.path)
	}
}

// pumpAll has subflows send what they may now.
func (s *simulation) pumpAll(c *connection) {
	for _, n := range c.group.Order() {
		if c.group.Full() {
			return
		}
		i := c.subflows[n]
		s.pump(i, s.flows.at(i))
	}
}

// assemble puts a packet's data to that of other subflows. It returns how many bytes can
// now be delivered, and has the acknowledgement that the packet becomes say how far.
func (s *simulation) assemble(n uint32, p *packet, f *flow) int64 {
	c := f.whole
	from, length := int64(0), int32(0) // of data that has arrived before: of none
	if at, ok := f.sender.Data(p.seq); ok {
		from, length = at, p.bytes-int32(s.tcp.HeaderBytes)
	}
	a, bytes := c.receiver.Data(from, length, false)
	for len(s.dataAcks) <= int(n) {
		s.dataAcks = append(s.dataAcks, 0)
	}
	s.dataAcks[n] = a.Cum
	if c.receiver.Done() && c.end == 0 {
		c.end = s.clock()
	}
	return bytes
}

// acknowledged goes on after the acknowledgement of a subflow's packet.
func (s *simulation) acknowledged(n, i uint32, f *flow) {
	c := f.whole
	room := c.group.Acked(s.dataAcks[n])
	if c.group.Done() {
		f.end = c.end
		s.finish(f)
		return
	}
	if room {
		s.pumpAll(c)
	}
	s.pump(i, f)
}

// sumUp makes what is said of one subflow's losses that of all.
func (s *simulation) sumUp(c *connection, e *FlowEnd) {
	e.Retransmits, e.Timeouts, e.DupAcks = 0, 0, 0
	for _, i := range c.subflows {
		again, timeouts, dupAcks := s.flows.at(i).sender.Stats()
		e.Retransmits += again
		e.Timeouts += timeouts
		e.DupAcks += dupAcks
	}
}

// finishRest ends the subflows but the one whose acknowledgement was the last, which is
// still under way.
func (s *simulation) finishRest(c *connection) {
	for _, i := range c.subflows {
		if f := s.flows.at(i); !f.done {
			f.done = true
			if f.underWay == 0 {
				s.release(i, f)
			}
		}
	}
}
