package spray

import (
	"fmt"
	"slices"
	"time"

	"weft/conga"
	"weft/topology"
)

// leaves is CONGA at edge switches (CONGA §3): a flowlet takes the port with the least
// max(local, remote) metric. Between pods aggregation switches spread by hash.
//
// The tables are weft's for hosts, one for each leaf, with the number of a port in place
// of a path. They treat all ports as equally fast: the bytes that a slower port sends
// count as much more. Those of switch-letflow see nothing: its flowlets take random ports.
type leaves struct {
	oblivious
	meters  *Meters
	tables  []*conga.Table // by rack
	fastest []float64      // ns a byte of a rack's fastest port
	perByte []float64      // by link
	gap     time.Duration
	flows   flowTables
}

func newLeaves(c SwitchConfig, o oblivious) (*leaves, error) {
	s := &leaves{oblivious: o, meters: NewMeters(c.Topology, c.Tau), perByte: perByte(c.Topology),
		gap: c.FlowletGap, flows: newFlowTables(&o.shape)}
	for i := range o.shape.racks {
		first := int(o.shape.uplink(o.shape.edge + topology.NodeID(i)))
		fastest := slices.Min(s.perByte[first : first+o.shape.ups])
		t, err := conga.New(conga.Config{Tau: c.Tau, RateBits: 8e9 / fastest, Seed: mix(c.Seed, uint64(i))})
		if err != nil {
			return nil, fmt.Errorf("spray: %w", err)
		}
		s.tables = append(s.tables, t)
		s.fastest = append(s.fastest, fastest)
	}
	return s, nil
}

// portTag is the LBTag of a port (CONGA §3.1): its number, where 4 bits have room.
func portTag(port int) uint8 { return uint8(port % conga.Tags) }

func (s *leaves) Up(sw topology.NodeID, _ int32, p *Packet, now time.Duration) int {
	ports := s.of(sw, p)
	if len(ports) == 0 {
		return -1
	}
	if !s.shape.isEdge(sw) {
		return s.hashed(sw, p, ports)
	}
	table := s.tables[sw-s.shape.edge]
	to := uint32(s.shape.edgeOf(p.Dst))
	port := s.flowlet(sw, table, to, p, ports, now)
	tag := portTag(port)
	p.Mark = Mark{Forward: true, Tag: tag}
	p.Mark.FbTag, p.Mark.FbMetric, p.Mark.Feedback = table.NextFeedback(to, now)
	slower := s.perByte[int(s.shape.uplink(sw))+port] / s.fastest[sw-s.shape.edge]
	table.Sent(tag, int(float64(p.Bytes)*slower), now)
	return port
}

// flowlet is the port of a packet's flowlet. An age bit that is looked at once a gap
// ends it after one to two of them (CONGA §3.4).
func (s *leaves) flowlet(sw topology.NodeID, table *conga.Table, to uint32, p *Packet, ports []int, now time.Duration) int {
	e, known := s.flows.get(sw, p.Hash)
	period := int64(now / s.gap)
	last := -1
	if known && slices.Contains(ports, int(e.port)) {
		last = int(e.port)
	}
	if last < 0 || period-e.used >= 2 {
		if s.name == switchLetFlow {
			e.port = int16(ports[s.below(len(ports))])
		} else {
			e.port = int16(table.Choose(to, ports, portTag, last, now))
		}
	}
	e.used = period
	return int(e.port)
}

func (s *leaves) Marks() bool { return true }

// Pass raises the mark of a packet, and takes it in where it leaves the fabric.
func (s *leaves) Pass(port int32, p *Packet, now time.Duration) {
	if port >= upPort(s.shape.edgeUp) {
		s.meters.Pass(port, int(p.Bytes), &p.Mark, now)
		return
	}
	at, from := s.tables[s.shape.rack(p.Dst)], uint32(s.shape.edgeOf(p.Src))
	if p.Mark.Forward {
		at.Received(from, p.Mark.Tag, p.Mark.CE, now)
	}
	if p.Mark.Feedback {
		at.Feedback(from, p.Mark.FbTag, p.Mark.FbMetric, now)
	}
}
