package spray

import (
	"math/rand/v2"
	"time"

	"weft/flowcell"
	"weft/topology"
)

// oblivious is switches that look at nothing but which links are live: ECMP and WCMP
// by a hash that each switch makes its own, packets at random or in turn.
type oblivious struct {
	nextHops
	name    string
	unit    flowcell.Unit
	seed    uint64
	rng     *rand.PCG
	turn    []uint32 // by switch and engine
	engines engines
}

// engines is which of a switch's engines forwards a packet (DRILL §3.2.1).
type engines struct {
	n  int
	in []uint8 // by the link that a packet comes up; nil: there is but one
}

func newEngines(t *topology.Topology, n int) engines {
	e := engines{n: n}
	if n > 1 {
		e.in = make([]uint8, t.NumLinks())
		for l := range e.in {
			e.in[l] = uint8(t.Link(topology.LinkID(l)).PortB % n)
		}
	}
	return e
}

func (e *engines) of(port int32) int {
	if e.in == nil {
		return 0
	}
	return int(e.in[port/2])
}

func (o *oblivious) Up(sw topology.NodeID, in int32, p *Packet, _ time.Duration) int {
	ports := o.of(sw, p)
	if len(ports) == 0 {
		return -1
	}
	switch o.name {
	case switchRB:
		return ports[o.below(len(ports))]
	case switchRR:
		t := &o.turn[int(sw-o.shape.edge)*o.engines.n+o.engines.of(in)]
		*t++
		return ports[*t%uint32(len(ports))]
	}
	return o.hashed(sw, p, ports)
}

// hashed is the port of a packet's flow.
func (o *oblivious) hashed(sw topology.NodeID, p *Packet, ports []int) int {
	return ports[HashAt(p.Hash^o.seed, sw)%uint64(len(ports))]
}

// below returns a random number from 0 to n-1.
func (o *oblivious) below(n int) int { return int(o.rng.Uint64() >> 32 * uint64(n) >> 32) }

func (o *oblivious) Unit() flowcell.Unit                { return o.unit }
func (o *oblivious) Marks() bool                        { return false }
func (o *oblivious) Pass(int32, *Packet, time.Duration) {}
func (o *oblivious) SetTopology(t *topology.Topology)   { o.set(t) }

// switches is how many have a choice.
func (s *shape) switches() int { return int(s.core - s.edge) }

// loads is how long the queues of ports that lead up are.
type loads struct {
	queues  Queues
	perByte []float64 // ns, by link
}

func perByte(t *topology.Topology) []float64 {
	list := make([]float64, t.NumLinks())
	for l := range list {
		list[l] = 8e9 / rateBits(t, topology.LinkID(l))
	}
	return list
}

// of is how long, in ns, the queue of a port takes: two parallel links, of which
// this is one that is twice as fast, have two queues half as long.
func (l *loads) of(link topology.LinkID) float64 {
	return float64(l.queues.QueueBytes(upPort(link))) * l.perByte[link]
}

// HashAt is the hash by which a switch chooses for a flow among links of equal cost.
func HashAt(flow uint64, sw topology.NodeID) uint64 { return mix(flow, uint64(sw)) }
