package spray

import (
	"time"

	"weft/luopan"
	"weft/topology"
)

// Probe is a sample of a path to be taken.
type Probe struct {
	// Owner is the node that samples: a host, or with RackSamples an edge switch. The
	// probe starts there, and its answer returns there.
	Owner topology.NodeID
	// Dst is the host that answers; with RackSamples an edge switch.
	Dst   topology.NodeID
	Path  int
	Token uint64
}

// Of probes and their answers.
const (
	// ProbeBytes is the length of a probe or an answer on the wire: with IP-in-IP a
	// little more than the 38 bytes of Luopan §3.1, and Ethernet's least.
	ProbeBytes = 64
	// QueueUnit is in what each port counts its queue, rounded down, and maxQueue
	// the most that they count together.
	QueueUnit = 1500
	maxQueue  = 127
)

// probeBudget, of each who samples, is more than is ever due: the paper bounds probes
// by their expiry alone (§3.1).
const probeBudget = 1e7

// sampled chooses by what probes have measured (Luopan §3). A flow does not keep to
// a symmetric group: samples tell more.
type sampled struct {
	shape  shape
	racks  bool            // tables are by rack
	alone  bool            // samples: tables are not told what is sent
	tables []*luopan.Table // by host or rack
	due    dues            // of tables
	send   func(Probe)     // during Probes only
	asks   topology.NodeID // whose they are
	relay  func(luopan.Probe)
}

func newSampled(h *Hosts) (*sampled, error) {
	s := &sampled{shape: h.shape, racks: h.config.RackSamples, alone: h.config.SamplesOnly}
	n := h.shape.hosts
	if s.racks {
		n = h.shape.racks
	}
	s.tables, s.due = make([]*luopan.Table, n), newDues(n)
	for i := range s.tables {
		edge := h.shape.edge + topology.NodeID(i)
		if !s.racks {
			edge = h.shape.edgeOf(topology.NodeID(i))
		}
		var err error
		s.tables[i], err = luopan.New(luopan.Config{
			SamplesOnly: s.alone, Turns: h.config.Turns, Samples: h.config.Options.Samples, Expiry: h.config.Options.Expiry,
			Budget: probeBudget, QueueUnit: QueueUnit, RateBits: rateBits(h.topo, h.shape.uplink(edge)), Seed: mix(h.config.Seed, uint64(i))})
		if err != nil {
			return nil, err
		}
	}
	s.relay = func(p luopan.Probe) {
		s.send(Probe{Owner: s.asks, Dst: topology.NodeID(p.Host), Path: p.Path, Token: p.Token})
	}
	return s, nil
}

// index is the number of the table of a host.
func (s *sampled) index(host topology.NodeID) int {
	if s.racks {
		return s.shape.rack(host)
	}
	return int(host)
}

// owner is whose a table is.
func (s *sampled) owner(i int) topology.NodeID {
	if s.racks {
		return s.shape.edge + topology.NodeID(i)
	}
	return topology.NodeID(i)
}

func (s *sampled) choose(_ *Flow, p *pair, _ []int, _ int, now time.Duration) int {
	i, rack := s.index(p.src), s.shape.edgeOf(p.dst)
	answers := p.dst
	if s.racks {
		answers = rack
	}
	path, _ := s.tables[i].Choose(uint32(rack), uint32(answers), p.paths.Live, now)
	s.set(i, s.tables[i].Next())
	return path
}

func (s *sampled) sent(p *pair, path, bytes int, _ time.Duration) {
	if s.alone {
		return
	}
	i := s.index(p.src)
	s.tables[i].Sent(uint32(s.shape.edgeOf(p.dst)), path, bytes)
	s.set(i, s.tables[i].Next())
}

func (s *sampled) set(i int, at time.Duration) {
	if s.due.of(i) != at {
		s.due.set(i, at)
	}
}

// Next returns when to call Probes, Never if nobody samples; the time may have passed.
// Data, Answer and Probes may change it.
func (h *Hosts) Next() time.Duration {
	if h.sampled == nil {
		return Never
	}
	return h.sampled.due.next()
}

// Probes calls send for every probe that is due. send must not call Hosts. Probes does
// not keep it.
func (h *Hosts) Probes(now time.Duration, send func(Probe)) {
	s := h.sampled
	if s == nil {
		return
	}
	s.send = send
	for s.due.next() <= now {
		i := s.due.first()
		s.asks = s.owner(i)
		s.tables[i].Probes(now, s.relay)
		s.set(i, max(s.tables[i].Next(), now+1))
	}
	s.send = nil
}

// Answer takes the answer to a probe. queue is the sum of the queues that switch ports
// have counted, in QueueUnit, and meters the number of these ports.
func (h *Hosts) Answer(p Probe, queue, meters int, now time.Duration) {
	s := h.sampled
	i := int(p.Owner)
	if s.racks {
		i -= int(s.shape.edge)
	}
	a := luopan.Answer{Token: p.Token, Path: p.Path, Queue: uint8(min(queue, maxQueue)), Meters: uint8(min(meters, 255))}
	s.tables[i].Answer(a, uint32(p.Dst), now)
	s.set(i, s.tables[i].Next())
}
