package sim

import (
	"weft/topology"
)

// warm begins to measure: all that was counted is forgotten.
func (s *simulation) warm() {
	s.hopsBefore += s.sentPackets()
	for i := range s.class {
		c := &s.class[i]
		c.packets, c.drops, c.marks = 0, 0, 0
		c.sum, c.squares, c.area = 0, 0, 0
	}
	m := &s.measured
	for _, c := range m.waits {
		*c = counts{}
	}
	*m.latency, *m.rtt, *m.resequencing = counts{}, counts{}, counts{}
	*m = measured{
		since: s.now, waits: m.waits, latency: m.latency, rtt: m.rtt, resequencing: m.resequencing,
		hopsBefore: m.hopsBefore, sentBefore: m.sentBefore, deliveredBefore: m.deliveredBefore,
	}
	for i := range s.ports {
		t := &s.ports[i]
		t.most, t.drops = 0, 0
		m.sentBefore[i] = t.bytes
	}
	copy(m.deliveredBefore, s.delivered)
}

// sentPackets is how many packets ports have sent since measuring began.
func (s *simulation) sentPackets() (n uint64) {
	for i := range s.class {
		n += s.class[i].packets
	}
	return n
}

// result is what was measured.
func (s *simulation) result() *Result {
	m := &s.measured
	r := &Result{
		End:            s.clock(),
		DeliveredBytes: make([]int64, len(s.delivered)),
		Ports:          make([]Port, len(s.ports)),
		Latency:        m.latency.histogram(), RTT: m.rtt.histogram(), Resequencing: m.resequencing.histogram(),
		OutOfOrder:  m.outOfOrder,
		DataPackets: m.dataPackets, AckPackets: m.ackPackets, ProbePackets: m.probePackets,
		Retransmits: m.retransmits, Timeouts: m.timeouts, Flows: m.flowsEnded,
		PacketHops: m.hopsBefore + s.sentPackets(),
	}
	for h, n := range s.delivered {
		r.DeliveredBytes[h] = n - m.deliveredBefore[h]
	}
	var ports [Places]int
	for i := range s.ports {
		t := &s.ports[i]
		c := &s.class[t.class]
		most := int(t.most / c.byteTime)
		r.Ports[i] = Port{Bytes: t.bytes - m.sentBefore[i], Drops: uint64(t.drops), MaxBytes: most}
		p := &r.Places[c.place]
		p.MaxBytes = max(p.MaxBytes, most)
		ports[c.place]++
	}
	for i := range r.Places {
		r.Places[i].sum(s, i, ports[i])
	}
	if s.resequencer != nil {
		r.Resequencer = s.resequencer.Stats()
	}
	return r
}

// sum adds up the classes of a place.
func (p *Place) sum(s *simulation, place, ports int) {
	var sum, squares, area float64
	for i := range s.class {
		c := &s.class[i]
		if int(c.place) != place {
			continue
		}
		perByte := float64(c.byteTime)
		p.Packets += c.packets
		p.Drops += c.drops
		p.Marks += c.marks
		sum += c.sum / perByte
		squares += c.squares / (perByte * perByte)
		area += c.area
	}
	if p.Packets > 0 {
		n := float64(p.Packets)
		p.MeanBytes = sum / n
		p.VarBytes = max(squares/n-p.MeanBytes*p.MeanBytes, 0)
	}
	if time := s.now - s.since; time > 0 && ports > 0 {
		p.TimeMeanBytes = area / float64(time) / float64(ports)
	}
	p.Wait = s.waits[place].histogram()
}

// view is what samples may look at.
type view struct{ s *simulation }

func (v view) QueueBytes(port int) int { return v.s.queueBytes(int32(port)) }

func (v view) SentBytes(port int) int64 {
	return v.s.ports[port].bytes - int64(v.s.queueBytes(int32(port)))
}

func (v view) Delivered(h topology.NodeID) int64 { return v.s.delivered[h] }
