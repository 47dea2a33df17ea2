package prober

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/probe"
	"weft/internal/shortage"
	"weft/liveness"
	"weft/topology"
)

// Prober probes until Close. Its methods are safe for concurrent use.
type Prober struct {
	self    topology.NodeID
	longest int // probe, without room for an outer header
	deliver func(*topology.Topology, *liveness.Carriage)
	sockets sockets
	kernel  *netlink.Handle
	start   time.Time
	wake    chan struct{} // something may have changed
	stop    chan struct{}
	ended   sync.WaitGroup
	closing sync.Once
	err     error

	mu     sync.Mutex // guards driver
	driver *probe.Driver
}

// Open begins to probe, in the network namespace of the calling thread.
func Open(c Config) (*Prober, error) {
	p, err := open(c)
	if err != nil {
		return nil, shortage.Explain(fmt.Errorf("probe paths: %w", err))
	}
	p.ended.Go(p.receive)
	p.ended.Go(p.run)
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
	p := &Prober{longest: max(c.MTU, encap.ProbeLen+encap.MaxOverhead), deliver: c.Deliver, start: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{})}
	var err error
	if p.driver, err = probe.New(c.driver(p)); err != nil {
		return nil, err
	}
	p.self, _ = c.Topology.ByAddr(c.Address)
	if p.kernel, err = netlink.NewHandle(unix.NETLINK_INET_DIAG); err != nil {
		return nil, err
	}
	if p.sockets, err = openSockets(&c); err != nil {
		p.kernel.Close()
		return nil, err
	}
	return p, nil
}

// driver is what concerns the Driver, whose clock and sockets are p's.
func (c *Config) driver(p *Prober) probe.Config {
	return probe.Config{Topology: c.Topology, Address: c.Address, Carrier: c.Carrier, Beside: c.Beside, Idle: c.Idle, MTU: c.MTU,
		Require: c.Require, Interval: c.Interval, Multiplier: c.Multiplier, Budget: c.Budget, Floor: c.Floor, Seed: c.Seed,
		Clock: p.now, Write: p.sockets.send, Observe: c.Observe}
}

func (p *Prober) now() time.Duration { return time.Since(p.start) }

// SetTopology replaces the topology that is known from elsewhere. The Prober's own
// findings are applied on top of it before delivery.
func (p *Prober) SetTopology(t *topology.Topology) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.driver.SetTopology(t, p.now()); err != nil {
		return err
	}
	p.nudge()
	return nil
}

// Topology returns the topology that was delivered last, or will be delivered next.
func (p *Prober) Topology() *topology.Topology {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.driver.Topology()
}

// nudge makes run look again.
func (p *Prober) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run sends what is due and delivers what is new.
func (p *Prober) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
		case <-p.wake:
		}
		p.mu.Lock()
		p.driver.Tick(p.now())
		t, carriage, news := p.driver.News()
		wait := p.driver.Next() - p.now()
		p.mu.Unlock()
		timer.Reset(wait)
		if news {
			p.deliver(t, carriage)
		}
	}
}

// receive takes what comes in until the socket is closed.
func (p *Prober) receive() {
	const batch = 32
	bufs, sizes := make([][]byte, batch), make([]int, batch)
	for i := range bufs {
		bufs[i] = make([]byte, encap.MaxOverhead+p.longest+1) // one more, or it may have been cut off
	}
	for {
		n, err := p.sockets.in.Read(bufs, sizes, encap.MaxOverhead)
		p.mu.Lock()
		for i := range n {
			p.driver.Take(bufs[i][:encap.MaxOverhead+sizes[i]], p.now())
		}
		news := p.driver.Changed() || p.driver.Next() <= p.now()
		p.mu.Unlock()
		if news {
			p.nudge()
		}
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.mu.Lock()
				p.err = err
				p.mu.Unlock()
			}
			return
		}
	}
}

// Carriage returns the Carriage that was delivered last, or will be delivered next.
func (p *Prober) Carriage() *liveness.Carriage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.driver.Carriage()
}

// SetIdle says whether another carrier is in use instead. This one is then only kept
// proved, at a tenth of the cost.
func (p *Prober) SetIdle(idle bool) {
	p.mu.Lock()
	p.driver.SetIdle(idle, p.now())
	p.mu.Unlock()
	p.nudge()
}

// Self returns the host's node.
func (p *Prober) Self() topology.NodeID { return p.self }

// Paths returns the state of all paths, with reasons.
func (p *Prober) Paths() []liveness.PathHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.driver.Paths()
}

// Stats returns the counters.
func (p *Prober) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.driver.Stats()
	s.Drops = p.sockets.in.Drops()
	return s
}

// Close stops the Prober, and waits for a running call of Deliver. It may be called more
// than once.
func (p *Prober) Close() (err error) {
	p.closing.Do(func() {
		close(p.stop)
		err = p.sockets.in.Close()
		p.ended.Wait()
		p.kernel.Close()
		err = errors.Join(err, p.sockets.close(), p.err)
	})
	return err
}
