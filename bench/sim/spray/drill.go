package spray

import (
	"cmp"
	"slices"
	"time"

	"weft/topology"
)

// drill models switches that follow DRILL(d, m): each engine of a switch sends a packet
// by the least loaded of d random ports and of the m ports that were least loaded at its
// latest choice (DRILL §3.2.2). If paths are not symmetric, a flow keeps to one of their
// components (§3.4.2); switch-drill-all does not do that.
//
// An engine does not see packets that are just entering a queue (§3.2.1): a packet that
// another engine has chosen for a port is visible once it would have been transferred at
// the port's rate, or after blind. An engine knows its own latest choices, since it has
// made them one after the other.
type drill struct {
	oblivious
	loads    loads
	samples  int
	memory   int
	blind    time.Duration // 0: as long as each packet takes
	memories []int16       // of all engines of all switches; -1: none
	entering []entering
}

// entering is packets that are on their way into a port's queue: a ring in the order
// in which they were chosen. Of more than it holds the oldest count as entered.
type entering struct {
	list     [1 << enteringBits]enterer
	from, to uint32
}

type enterer struct {
	until  time.Duration
	bytes  int32
	engine uint8
}

const enteringBits = 5

func (e *entering) at(i uint32) *enterer { return &e.list[i%(1<<enteringBits)] }

func (e *entering) add(x enterer) {
	if e.to-e.from == 1<<enteringBits {
		e.from++
	}
	*e.at(e.to) = x
	e.to++
}

// hidden is how many bytes an engine does not see yet.
func (e *entering) hidden(engine int, now time.Duration) (bytes int32) {
	for e.from != e.to && e.at(e.from).until <= now {
		e.from++
	}
	for i := e.from; i != e.to; i++ {
		if x := e.at(i); x.until > now && int(x.engine) != engine {
			bytes += x.bytes
		}
	}
	return bytes
}

func newDrill(c SwitchConfig, o oblivious, l loads) *drill {
	d := &drill{oblivious: o, loads: l, samples: c.Samples, memory: c.Memory, blind: c.Blind}
	d.memories = make([]int16, o.shape.switches()*c.Engines*c.Memory)
	for i := range d.memories {
		d.memories[i] = -1
	}
	if c.Engines > 1 {
		d.entering = make([]entering, c.Topology.NumLinks()-int(o.shape.edgeUp))
	}
	return d
}

func (d *drill) Up(sw topology.NodeID, in int32, p *Packet, now time.Duration) int {
	ports := d.of(sw, p)
	if len(ports) == 0 {
		return -1
	}
	return d.choose(sw, in, p, ports, now)
}

func (d *drill) choose(sw topology.NodeID, in int32, p *Packet, ports []int, now time.Duration) int {
	engine := d.engines.of(in)
	at := (int(sw-d.shape.edge)*d.engines.n + engine) * d.memory
	memory := d.memories[at : at+d.memory]
	first := d.shape.uplink(sw)

	var least ranking
	var picked [maxSamples]int
	n := min(d.samples, len(ports))
	for i := range n {
		picked[i] = d.pick(len(ports), picked[:i])
		port := ports[picked[i]]
		least.add(port, d.seen(first+topology.LinkID(port), engine, now), d.memory)
	}
	for _, m := range memory {
		if port := int(m); port >= 0 && !isPicked(port, ports, picked[:n]) && (d.all != nil || slices.Contains(ports, port)) {
			least.add(port, d.seen(first+topology.LinkID(port), engine, now), d.memory)
		}
	}
	for i := range memory {
		memory[i] = -1
		if i < least.n {
			memory[i] = least.ports[i]
		}
	}
	port := int(least.ports[0])
	if d.entering != nil {
		d.enter(first+topology.LinkID(port), engine, p.Bytes, now)
	}
	return port
}

// isPicked reports whether a port is among those picked.
func isPicked(port int, ports, picked []int) bool {
	for _, i := range picked {
		if ports[i] == port {
			return true
		}
	}
	return false
}

// pick returns a random number below n that is not among those picked before.
func (d *drill) pick(n int, before []int) int {
	for {
		if i := d.below(n); !slices.Contains(before, i) {
			return i
		}
	}
}

// seen is the load of a port as an engine sees it.
func (d *drill) seen(l topology.LinkID, engine int, now time.Duration) float64 {
	load := d.loads.of(l)
	if d.entering == nil {
		return load
	}
	hidden := d.entering[l-d.shape.edgeUp].hidden(engine, now)
	return max(0, load-float64(hidden)*d.loads.perByte[l])
}

// enter takes note of a packet that goes to a port.
func (d *drill) enter(l topology.LinkID, engine int, bytes int32, now time.Duration) {
	blind := cmp.Or(d.blind, time.Duration(float64(bytes)*d.loads.perByte[l]))
	d.entering[l-d.shape.edgeUp].add(enterer{now + blind, bytes, uint8(engine)})
}

// ranking is the least loaded of the ports added, the least first, and who was added
// first among equals.
type ranking struct {
	n     int
	ports [maxMemory]int16
	loads [maxMemory]float64
}

// add keeps room for max ports.
func (r *ranking) add(port int, load float64, max int) {
	i := r.n
	for i > 0 && load < r.loads[i-1] {
		i--
	}
	if i == max {
		return
	}
	r.n = min(r.n+1, max)
	copy(r.ports[i+1:r.n], r.ports[i:])
	copy(r.loads[i+1:r.n], r.loads[i:])
	r.ports[i], r.loads[i] = int16(port), load
}

// drillFlow is switches by which DRILL(d, m) chooses the port of a flow's first
// packet, and the others follow (DRILL §4).
type drillFlow struct {
	*drill
	flows flowTables
}

func (f *drillFlow) Up(sw topology.NodeID, in int32, p *Packet, now time.Duration) int {
	ports := f.of(sw, p)
	if len(ports) == 0 {
		return -1
	}
	e, known := f.flows.get(sw, p.Hash)
	e.used = int64(now)
	if !known || !slices.Contains(ports, int(e.port)) {
		e.port = int16(f.choose(sw, in, p, ports, now))
	}
	return int(e.port)
}
