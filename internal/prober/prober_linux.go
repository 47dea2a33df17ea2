package prober

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"weft/encap"
	"weft/internal/clock"
	"weft/internal/lookout"
	"weft/internal/probe"
	"weft/internal/shortage"
	"weft/link"
	"weft/liveness"
	"weft/topology"
)

// Prober probes until Close. Its methods are safe for concurrent use.
type Prober struct {
	self    netip.Addr
	longest int // probe, without room for an outer header
	sockets sockets
	kernel  connections
	opened  openings
	also    func() []netip.Addr // Config.Forwarded
	lookout *lookout.Lookout
	stop    chan struct{}
	ended   sync.WaitGroup
	closing sync.Once
	failed  sync.Mutex
	err     error // of receive
}

// Open begins to probe, in the network namespace of the calling thread.
func Open(c Config) (*Prober, error) {
	p, err := open(c)
	if err != nil {
		return nil, shortage.Explain(fmt.Errorf("probe paths: %w", err))
	}
	p.lookout.Start()
	for _, in := range p.sockets.ins() {
		p.ended.Go(func() { p.receive(in) })
	}
	p.ended.Go(p.lookAround)
	return p, nil
}

func open(c Config) (*Prober, error) {
	if c.Deliver == nil {
		return nil, errors.New("Deliver is missing")
	}
	if err := c.checkCarrier(); err != nil {
		return nil, err
	}
	if c.MTU == 0 {
		i, err := net.InterfaceByName(c.Interface)
		if err != nil {
			return nil, fmt.Errorf("Interface %s: %w", c.Interface, err)
		}
		c.MTU = min(i.MTU, encap.MaxProbeLen)
	}
	c.MTU = max(c.MTU, 0)
	p := &Prober{also: c.Forwarded, longest: max(c.MTU, encap.ProbeLenFrom(c.Address)+encap.MaxOverhead), stop: make(chan struct{})}
	var err error
	if p.lookout, err = lookout.New(c.lookout(p)); err != nil {
		return nil, err
	}
	p.self, _, _ = c.Topology.HostAt(c.Address)
	if p.kernel, err = openConnections(); err != nil {
		return nil, err
	}
	p.opened.open()
	if p.sockets, err = openSockets(&c); err != nil {
		p.opened.close()
		p.kernel.close()
		return nil, err
	}
	return p, nil
}

// lookout says what is probed, by p's sockets.
func (c *Config) lookout(p *Prober) lookout.Config {
	l := lookout.Config{
		Probe: probe.Config{Topology: c.Topology, Address: c.Address, Carrier: c.Carrier, Beside: c.Beside, Idle: c.Idle, MTU: c.MTU,
			Require: c.Require, Interval: c.Interval, Multiplier: c.Multiplier, Budget: c.Budget, Floor: c.Floor, Seed: c.Seed, Rests: !c.Awake,
			Write: func(packet []byte, via netip.Addr) error { return p.sockets.send(packet, via) }, Observe: c.Observe},
		Clock: clock.Real(), Flush: p.flush, Journal: c.Journal,
		Tell: func(t *topology.Topology, carriage *liveness.Carriage) error { c.Deliver(t, carriage); return nil },
	}
	if len(c.Uplinks) > 0 {
		l.Probe.WriteBy = func(packet []byte, via netip.Addr, from int) error { return p.sockets.sendBy(packet, via, from) }
	}
	return l
}

// flush sends what is kept. What is lost is a probe that is missed.
func (p *Prober) flush() { p.sockets.flush() }

// SetTopology replaces the topology that is known from elsewhere. The Prober's own
// findings are applied on top of it. Deliver has been called when SetTopology returns.
func (p *Prober) SetTopology(t *topology.Topology) error {
	if err := p.lookout.SetTopology(t); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Topology returns the topology that was delivered last, or will be delivered next.
func (p *Prober) Topology() *topology.Topology { return p.lookout.Topology() }

// receive takes what comes in by a socket until it is closed.
func (p *Prober) receive(in *link.Packet) {
	const batch = 32
	bufs, sizes := make([][]byte, batch), make([]int, batch)
	for i := range bufs {
		bufs[i] = make([]byte, encap.MaxOverhead+p.longest+1) // one more, or it may have been cut off
	}
	taken := make([][]byte, 0, batch)
	for {
		n, err := in.Read(bufs, sizes, encap.MaxOverhead)
		taken = taken[:0]
		for i := range n {
			taken = append(taken, bufs[i][:encap.MaxOverhead+sizes[i]])
		}
		p.lookout.Take(taken...)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.failed.Lock()
				p.err = errors.Join(p.err, err)
				p.failed.Unlock()
			}
			return
		}
	}
}

// Carriage returns the Carriage that was delivered last, or will be delivered next.
func (p *Prober) Carriage() *liveness.Carriage { return p.lookout.Carriage() }

// Self returns the host, as topology.HostAt names it.
func (p *Prober) Self() netip.Addr { return p.self }

// Paths returns the state of all paths, with reasons.
func (p *Prober) Paths() []liveness.PathHealth {
	paths, _ := p.lookout.Paths()
	return paths
}

// Suspects returns the links that are suspected, and the paths that one destination accuses.
func (p *Prober) Suspects() []liveness.Suspect { return p.lookout.Suspects() }

// Stats returns the counters.
func (p *Prober) Stats() Stats {
	s := p.lookout.Stats()
	for _, in := range p.sockets.ins() {
		s.Drops += in.Drops()
	}
	s.Unsent += p.sockets.unsent.Load()
	s.Denied += p.sockets.denied.Load() + p.sockets.in.Denied()
	return s
}

// Close stops the Prober, and waits for a running call of Deliver. It may be called more
// than once.
func (p *Prober) Close() (err error) {
	p.closing.Do(func() {
		close(p.stop)
		for _, in := range p.sockets.ins() {
			err = errors.Join(err, in.Close())
		}
		p.ended.Wait()
		p.lookout.Close()
		p.kernel.close()
		p.opened.close()
		err = errors.Join(err, p.sockets.close(), p.err)
	})
	return err
}
