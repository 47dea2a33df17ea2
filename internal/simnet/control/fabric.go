package control

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"weft/internal/timerq"
	"weft/topology"
	"weft/topoupdate"
)

// Config is a fabric and how its agents are set.
type Config struct {
	Topology *topology.Topology
	Seed     uint64
	// Agent is what all agents have in common; Topology, Self, Boot and Seed are
	// filled in. Listeners take Keys and MaxAge from it.
	Agent topoupdate.AgentConfig
	Delay time.Duration // of a message, at least; up to twice as long at random
	Loss  float64       // of messages, 0 to 1
}

// Fabric is the simulation. It is not safe for concurrent use.
type Fabric struct {
	config Config
	top    *topology.Topology
	now    time.Duration
	random *rand.Rand
	queue  timerq.Queue[event]
	nodes  []node
	cables []cable
	spare  [][]byte
	stats  Stats
}

// Stats counts what has happened.
type Stats struct {
	Events   uint64 // messages that arrived, and times at which a node was due
	Messages uint64 // sent
	Lost     uint64 // of these
	Faults   uint64 // failures, repairs, restarts: what was done from outside
	InFlight int    // the most events that were ever under way
}

// node is a switch with its agent or a host with its listener; neither while it
// is off.
type node struct {
	ports    []topology.Port
	agent    *topoupdate.Agent
	listener *topoupdate.Listener
	off      bool // the machine has no power: its links have no carrier
	life     int
	busy     time.Duration // until when it does not run
	wake     time.Duration // when it is next due; what else is in the queue is void
	boot     uint64        // of its last agent
}

// cable is a link's state: cut, or deaf towards one end (0: towards A).
type cable struct {
	cut  bool
	deaf [2]bool
}

// start of the clocks, so that they can be set back.
const epoch = 1_000_000 * time.Hour

// signed are the keys of a fabric that is given none: hosts believe everything only
// if it is signed.
var signed = topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: make([]byte, 32)}}}

// New returns a fabric in which everything is up and everybody starts.
func New(c Config) (*Fabric, error) {
	if len(c.Agent.Keys.List) == 0 {
		c.Agent.Keys = signed
	}
	f := &Fabric{
		config: c, top: c.Topology,
		random: rand.New(rand.NewPCG(c.Seed, 0x77656674)),
		nodes:  make([]node, c.Topology.NumNodes()),
		cables: make([]cable, c.Topology.NumLinks()),
	}
	for i := range f.nodes {
		f.nodes[i].ports = c.Topology.Ports(topology.NodeID(i))
	}
	for i := range f.nodes {
		if err := f.Start(topology.NodeID(i), 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Now returns the virtual time.
func (f *Fabric) Now() time.Duration { return f.now }

// Stats returns the counters.
func (f *Fabric) Stats() Stats { return f.stats }

// Agent returns a switch's agent; nil while there is none.
func (f *Fabric) Agent(id topology.NodeID) *topoupdate.Agent { return f.nodes[id].agent }

// Listener returns a host's listener; nil while there is none.
func (f *Fabric) Listener(id topology.NodeID) *topoupdate.Listener { return f.nodes[id].listener }

// SetLoss has messages be lost with another probability.
func (f *Fabric) SetLoss(p float64) { f.config.Loss = p }

// Start starts a node's agent or listener, anew if it runs. The clock by which
// the agent numbers its life may have been set back.
func (f *Fabric) Start(id topology.NodeID, back time.Duration) error {
	n := &f.nodes[id]
	f.Stop(id)
	n.wake = -1
	if int(id) < f.top.NumHosts() {
		l, err := topoupdate.NewListener(topoupdate.ListenerConfig{
			Topology: f.top, Self: id, Keys: f.config.Agent.Keys, MaxAge: f.config.Agent.MaxAge,
		})
		if err != nil {
			return fmt.Errorf("control: %s: %w", f.top.Node(id).Name, err)
		}
		n.listener = l
		f.schedule(id)
		return nil
	}
	c := f.config.Agent
	c.Topology, c.Self, c.Seed = f.top, id, f.random.Uint64()
	c.Boot = uint64(epoch + f.now - back + time.Duration(f.random.IntN(1000)))
	if back == 0 {
		c.Boot = max(c.Boot, n.boot+1)
	}
	n.boot = c.Boot
	a, err := topoupdate.NewAgent(c)
	if err != nil {
		return fmt.Errorf("control: %s: %w", f.top.Node(id).Name, err)
	}
	n.agent = a
	for _, p := range n.ports {
		a.Carrier(p.Index, f.carrier(p.Link), f.now)
	}
	a.Tick(f.now)
	f.after(id)
	return nil
}

// Stop ends a node's agent or listener as a crash does: without a word.
func (f *Fabric) Stop(id topology.NodeID) {
	f.stats.Faults++
	n := &f.nodes[id]
	n.agent, n.listener = nil, nil
	n.life++
}

// Leave ends a switch's agent in an orderly way.
func (f *Fabric) Leave(id topology.NodeID) {
	n := &f.nodes[id]
	if n.agent != nil {
		n.agent.Leave(f.now)
		n.agent.Send(func(port int, packet []byte) { f.send(id, port, packet) })
	}
	f.Stop(id)
}

// Power switches a machine off or on. Off, its links have no carrier; on, it
// starts.
func (f *Fabric) Power(id topology.NodeID, on bool) error {
	n := &f.nodes[id]
	if n.off == !on {
		return nil
	}
	f.Stop(id)
	f.change(n.ports, func() { n.off = !on })
	if on {
		return f.Start(id, 0)
	}
	return nil
}

// Cut cuts a cable, or mends it; both ends see it by the carrier.
func (f *Fabric) Cut(l topology.LinkID, cut bool) {
	f.stats.Faults++
	f.change([]topology.Port{{Link: l}}, func() { f.cables[l].cut = cut })
}

// Deafen has nothing arrive any more at the lower or the upper end of a link, or
// has it arrive again. Nobody is told.
func (f *Fabric) Deafen(l topology.LinkID, atUpper, deaf bool) {
	f.stats.Faults++
	end := 0
	if atUpper {
		end = 1
	}
	f.cables[l].deaf[end] = deaf
}

// Busy keeps a node's processor from it for a time. What comes for it waits.
func (f *Fabric) Busy(id topology.NodeID, d time.Duration) {
	f.stats.Faults++
	f.nodes[id].busy = f.now + d
}

// later puts an event off until its node runs again. Messages come first: a node reads what
// has come before it looks at the clock.
func (f *Fabric) later(n *node, e *event) {
	at := n.busy
	if e.packet == nil {
		if n.life != e.life || f.now != n.wake {
			return
		}
		at++
		n.wake = at
	}
	f.queue.Add(at, *e)
}

func (f *Fabric) carrier(l topology.LinkID) bool {
	link := f.top.Link(l)
	return !f.cables[l].cut && !f.nodes[link.A].off && !f.nodes[link.B].off
}

// change does what may change carriers, and tells the agents at both ends.
func (f *Fabric) change(ports []topology.Port, do func()) {
	before := make([]bool, len(ports))
	for i, p := range ports {
		before[i] = f.carrier(p.Link)
	}
	do()
	for i, p := range ports {
		now := f.carrier(p.Link)
		if now == before[i] {
			continue
		}
		l := f.top.Link(p.Link)
		f.tell(l.A, l.PortA, now)
		f.tell(l.B, l.PortB, now)
	}
}

func (f *Fabric) tell(id topology.NodeID, port int, up bool) {
	if a := f.nodes[id].agent; a != nil {
		a.Carrier(port, up, f.now)
		f.after(id)
	}
}

// Run lets everything happen up to a time.
func (f *Fabric) Run(until time.Duration) {
	for f.queue.Len() > 0 && f.queue.Next() <= until {
		f.stats.InFlight = max(f.stats.InFlight, f.queue.Len())
		f.now = f.queue.Next()
		e := f.queue.Pop()
		f.step(&e)
	}
	f.now = until
}

func (f *Fabric) step(e *event) {
	n := &f.nodes[e.node]
	if f.now < n.busy {
		f.later(n, e)
		return
	}
	if e.packet != nil {
		if n.agent != nil && n.life == e.life && f.carrier(n.ports[e.port].Link) {
			f.stats.Events++
			n.agent.Receive(e.port, e.packet, f.now)
			f.after(e.node)
		} else if n.listener != nil && n.life == e.life {
			f.stats.Events++
			n.listener.Receive(e.packet, netip.Addr{}, f.now)
			f.schedule(e.node)
		}
		f.spare = append(f.spare, e.packet)
		return
	}
	if n.life != e.life || f.now != n.wake {
		return
	}
	f.stats.Events++
	n.wake = -1
	if n.agent != nil {
		n.agent.Tick(f.now)
		f.after(e.node)
	} else if n.listener != nil {
		n.listener.Tick(f.now)
		f.schedule(e.node)
	}
}

// after sends what an agent has to send after a call, and notes when it is due.
func (f *Fabric) after(id topology.NodeID) {
	f.nodes[id].agent.Send(func(port int, packet []byte) { f.send(id, port, packet) })
	f.schedule(id)
}

func (f *Fabric) schedule(id topology.NodeID) {
	n := &f.nodes[id]
	var next time.Duration
	if n.agent != nil {
		next = n.agent.Next()
	} else {
		next = n.listener.Next()
	}
	next = max(next, f.now)
	if n.wake >= 0 && n.wake <= next || next == 1<<63-1 {
		return
	}
	n.wake = next
	f.queue.Add(next, event{node: id, life: n.life})
}

func (f *Fabric) send(from topology.NodeID, port int, packet []byte) {
	f.stats.Messages++
	p := f.nodes[from].ports[port]
	end := 0
	if p.Up {
		end = 1
	}
	if !f.carrier(p.Link) || f.cables[p.Link].deaf[end] || f.random.Float64() < f.config.Loss {
		f.stats.Lost++
		return
	}
	var b []byte
	if last := len(f.spare) - 1; last >= 0 {
		b, f.spare = f.spare[last][:0], f.spare[:last]
	}
	delay := f.config.Delay
	if delay > 0 {
		delay += time.Duration(f.random.Int64N(int64(delay)))
	}
	f.queue.Add(f.now+delay, event{
		node: p.Peer, port: p.PeerPort,
		life: f.nodes[p.Peer].life, packet: append(b, packet...),
	})
}
