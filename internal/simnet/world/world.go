package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"weft/internal/simnet"
	"weft/link"
	"weft/stack"
	"weft/topology"
)

// Config says what a World is like.
type Config struct {
	// Topology is a specification that topology.Parse reads. Required, unless
	// Fabric has the topology itself.
	Topology string
	// Fabric, if not nil, is used instead of Topology. Links that are down in it
	// carry nothing.
	Fabric *topology.Topology
	// Links says what the links are like. Its Seed is not looked at, and hosts
	// have a queue of 1000 full frames, the transmit queue of a Linux
	// interface, if HostQueueBytes does not say otherwise. Required.
	Links simnet.Config
	// MTU of the fabric in bytes; 0 means link.DefaultMTU.
	MTU int
	// Seed determines everything that is random, in the fabric and the hosts.
	Seed uint64
	// Hosts, if not nil, may change the configuration of a host, which is
	// known by its name (h0.0.2), before it starts.
	Hosts func(name string, c *stack.Config)
	// IPv6 gives hosts an IPv6 address as well (topology.Addr6), by which all connections are
	// made, and has IPv6 carried as IPv4 is.
	IPv6 bool
}

// World is a fabric and the hosts on it. It is not safe for concurrent use.
type World struct {
	config  Config
	clock   clock
	fabric  *topology.Topology
	net     *simnet.Network
	hosts   []*stack.Host // by NodeID; nil until a scenario mentions them
	kernels []*kernel     // those of hosts whose TCP is their kernel's
	trace   trace
	pattern []byte

	begun  int         // transfers
	open   []*transfer // not ended; endless ones are not among them
	failed []error     // mistakes in the scenario, flows that broke
	port   uint16      // the latest that a transfer took

	mu    sync.Mutex
	ready []*task // have something to do
}

// New builds a World. Hosts start when a scenario mentions them.
func New(c Config) *World {
	if c.MTU == 0 {
		c.MTU = link.DefaultMTU
	}
	w := &World{config: c, pattern: newPattern(c.Seed)}
	var err error
	if w.fabric = c.Fabric; w.fabric == nil {
		w.fabric, err = topology.Parse(c.Topology)
	}
	if err == nil {
		c.Links.Seed = c.Seed
		if c.Links.HostQueueBytes == 0 {
			c.Links.HostQueueBytes = 1000 * (c.MTU + simnet.FrameOverhead)
		}
		w.net, err = simnet.New(w.fabric, c.Links)
	}
	if err != nil {
		// A fabric in which nothing happens; Run returns the error.
		w.fail(err)
		w.fabric, _ = topology.FatTree(topology.MinFatTreeK)
		w.net, _ = simnet.New(w.fabric, simnet.Config{RateBits: 1})
	}
	w.hosts = make([]*stack.Host, w.fabric.NumHosts())
	w.kernels = make([]*kernel, w.fabric.NumHosts())
	return w
}

// Close stops all hosts.
func (w *World) Close() {
	for _, h := range w.hosts {
		if h != nil {
			h.Close()
		}
	}
}

// Now returns the time since New.
func (w *World) Now() time.Duration { return w.clock.Now() }

// At has f called at a time; it may do anything but run the World.
func (w *World) At(at time.Duration, f func()) { w.clock.at(at, f) }

// Topology returns the fabric with all links up.
func (w *World) Topology() *topology.Topology { return w.fabric }

// Network returns the fabric's links and switches, to look at.
func (w *World) Network() *simnet.Network { return w.net }

// Trace returns a hash over all packets that hosts have sent or been given so
// far, with times and hosts: two Worlds in which the same happened have the
// same.
func (w *World) Trace() uint64 { return w.trace.sum }

// Packets returns how many packets Trace covers.
func (w *World) Packets() uint64 { return w.trace.packets }

// Host returns a host's stack, and starts it if need be; nil if there is no
// such host. Calls on it are the scenario's, see stack.Config.Simulation.
func (w *World) Host(name string) *stack.Host {
	n, err := w.fabric.Lookup(name)
	if err == nil && n.Layer != topology.LayerHost {
		err = fmt.Errorf("%s is not a host", name)
	}
	if err != nil {
		w.fail(err)
		return nil
	}
	if w.hosts[n.ID] == nil {
		if w.hosts[n.ID], err = w.start(n); err != nil {
			w.fail(err)
		}
	}
	return w.hosts[n.ID]
}

func (w *World) start(n topology.Node) (*stack.Host, error) {
	c := stack.Config{
		Address:  w.fabric.EmbeddedAddr(n.ID),
		Topology: w.fabric,
		Device:   &device{w, n.ID},
		Simulation: stack.Simulation{
			Seed:  rand.NewPCG(w.config.Seed, uint64(n.ID)).Uint64() | 1, // 0 is "any"
			Clock: &w.clock,
		},
	}
	if w.config.IPv6 {
		c.Address6, c.CarryIPv6 = topology.Addr6(c.Address), true
	}
	if w.config.Hosts != nil {
		w.config.Hosts(n.Name, &c)
	}
	return stack.New(c)
}

func (w *World) fail(err error) {
	if err != nil {
		w.failed = append(w.failed, err)
	}
}

// Run lets time pass until all flows and round trips that are to end have
// ended, or until limit, which is an error.
func (w *World) Run(limit time.Duration) error {
	for len(w.failed) == 0 && len(w.open) > 0 {
		if !w.step(limit) {
			w.clock.advance(max(limit, w.Now()))
			return fmt.Errorf("world: %d flows have not ended at %v, first %v", len(w.open), limit, w.open[0])
		}
	}
	return errors.Join(w.failed...)
}

// RunUntil lets time pass until at, whatever has ended by then.
func (w *World) RunUntil(at time.Duration) error {
	for len(w.failed) == 0 && w.step(at) {
	}
	w.clock.advance(max(at, w.Now()))
	return errors.Join(w.failed...)
}

// step lets the next event happen, false if it is later than limit.
func (w *World) step(limit time.Duration) bool {
	arrival, packets := w.net.NextDeadline()
	expiry, timers := w.clock.next()
	switch {
	case packets && arrival <= limit && !(timers && expiry < arrival):
		w.clock.advance(arrival)
		w.net.Advance(arrival, w.deliver)
	case timers && expiry <= limit:
		w.clock.fire()
	default:
		return false
	}
	w.runReady()
	return true
}

func (w *World) deliver(host topology.NodeID, packet []byte) {
	if k := w.kernels[host]; k != nil {
		k.arrive(packet)
		return
	}
	h := w.hosts[host]
	if h == nil {
		return
	}
	w.trace.add(w.Now(), host, delivered, packet)
	h.Receive(packet)
}

// device is a host's uplink. It is never read: deliver calls the host.
type device struct {
	world *World
	host  topology.NodeID
}

var (
	_ stack.Device      = (*device)(nil)
	_ stack.QueueDevice = (*device)(nil)
)

func (d *device) Holds(bytes int) bool { return d.world.net.Backlog(d.host, d.world.Now()) >= bytes }

// Write is called while the World waits, if perhaps by another goroutine.
func (d *device) Write(bufs [][]byte, offset int) (int, error) {
	w := d.world
	for _, b := range bufs {
		w.trace.add(w.Now(), d.host, injected, b[offset:])
		w.net.Inject(d.host, b[offset:], w.Now())
	}
	return len(bufs), nil
}

func (d *device) Read([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }

func (d *device) MTU() int { return d.world.config.MTU }

func (d *device) Close() error { return nil }
