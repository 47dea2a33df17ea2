package prober

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/shortage"
	"weft/liveness"
	"weft/topology"
)

// Config says whose paths are probed.
type Config struct {
	// Interface leads into the fabric.
	Interface string
	// Address is the host's own in Topology, its kernel's.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it.
	Topology *topology.Topology
	// Carrier has probes take their paths: the one of data, since labels may fail
	// where routes do not. MPLS is refused. With SRv6 Gateway, the edge switch behind
	// Interface, is needed.
	Carrier encap.Carrier
	Gateway netip.Addr
	// Beside says that other Probers run on this host, for other carriers: this one
	// leaves to them the requests of peers that have come by theirs. Else it answers
	// all.
	Beside bool
	// Idle is what SetIdle says at the beginning.
	Idle bool
	// MTU is that of liveness.Config; 0 means the interface's, below 0 that there are
	// no full-size probes.
	MTU int
	// Require is that of liveness.Config.
	Require bool
	// Interval, Multiplier, Budget and Floor are those of liveness.Config.
	Interval   time.Duration
	Multiplier int
	Budget     float64
	Floor      float64
	// Seed is secret, and another one each time.
	Seed uint64
	// Observe, if not nil, is called every 10 ms to tell the Watcher what has been
	// seen of the host's traffic.
	Observe func(*liveness.Watcher, time.Duration)
	// Deliver is called with every new topology, and whenever it changes to which racks
	// the carrier is used or how long packets may be, by one goroutine: never two calls
	// at a time. It must not call Close.
	Deliver func(*topology.Topology, *liveness.Carriage)
}

// Prober probes until Close. Its methods are safe for concurrent use.
type Prober struct {
	self    topology.NodeID
	address netip.Addr
	carrier encap.Carrier
	beside  bool
	longest int // probe, without room for an outer header
	deliver func(*topology.Topology, *liveness.Carriage)
	observe func(*liveness.Watcher, time.Duration)
	sockets sockets
	kernel  *netlink.Handle
	start   time.Time
	wake    chan struct{} // something may have changed
	stop    chan struct{}
	ended   sync.WaitGroup
	closing sync.Once
	err     error

	mu      sync.Mutex
	watcher *liveness.Watcher
	base    *topology.Topology
	shown   *topology.Topology
	carried *liveness.Carriage // shown with it
	labels  liveness.Labels
	echoes  bucket
	id      uint16
	buf     []byte
	stats   Stats
}

// Stats counts what a Prober has done.
type Stats struct {
	Watcher liveness.Stats
	Echoed  uint64 // requests of peers that were answered
	Refused uint64 // requests that were too many, or made no sense
	Unsent  uint64 // probes and answers that the kernel did not take
	Drops   uint64 // probes that the socket had no room for
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
	if c.Topology == nil || c.Deliver == nil {
		return nil, errors.New("Topology or Deliver is missing")
	}
	self, ok := c.Topology.ByAddr(c.Address)
	if !ok {
		return nil, fmt.Errorf("Address %v is no host of %v", c.Address, c.Topology)
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
	w, err := liveness.New(liveness.Config{Topology: c.Topology, Self: self, Address: c.Address, Interval: c.Interval,
		Multiplier: c.Multiplier, Budget: c.Budget, Floor: c.Floor, Seed: c.Seed, Carrier: c.Carrier, MTU: c.MTU, Require: c.Require})
	if err != nil {
		return nil, err
	}
	w.SetIdle(c.Idle, 0)
	kernel, err := netlink.NewHandle(unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, err
	}
	longest := max(c.MTU, encap.ProbeLen+encap.MaxOverhead)
	p := &Prober{self: self, address: c.Address, carrier: c.Carrier, beside: c.Beside, longest: longest, deliver: c.Deliver, observe: c.Observe, kernel: kernel, start: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		watcher: w, base: c.Topology, shown: w.Topology(), carried: w.Carriage(), buf: make([]byte, 0, encap.MaxOverhead+longest),
		labels: liveness.Labels{Topology: c.Topology, Self: self}}
	if p.sockets, err = openSockets(&c); err != nil {
		kernel.Close()
		return nil, err
	}
	return p, nil
}

func (p *Prober) now() time.Duration { return time.Since(p.start) }

// SetTopology replaces what is known from elsewhere. What the Prober has found out
// itself is delivered on top of it.
func (p *Prober) SetTopology(t *topology.Topology) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.watcher.SetTopology(t, p.now()); err != nil {
		return err
	}
	p.base = t
	p.nudge()
	return nil
}

// Topology is what was delivered last, or will be next.
func (p *Prober) Topology() *topology.Topology {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watcher.Topology()
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
		if p.observe != nil {
			p.observe(p.watcher, p.now())
		}
		p.watcher.Tick(p.now())
		p.watcher.Probes(p.send)
		now, carried := p.watcher.Topology(), p.watcher.Carriage()
		news := now != p.shown || carried != p.carried
		p.shown, p.carried = now, carried
		wait := p.watcher.Next() - p.now()
		p.mu.Unlock()
		if p.observe != nil {
			wait = min(wait, observeEvery)
		}
		timer.Reset(wait)
		if news {
			p.deliver(now, carried)
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
			p.take(bufs[i][:encap.MaxOverhead+sizes[i]])
		}
		news := p.watcher.Topology() != p.shown || p.watcher.Carriage() != p.carried
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

// take looks at a packet, behind room for an outer header.
func (p *Prober) take(buf []byte) {
	packet := buf[encap.MaxOverhead:]
	if len(packet) > 9 && packet[9] == protoICMP {
		p.watcher.TooBig(packet, p.now())
		return
	}
	b, err := encap.ParseProbe(packet)
	if err == nil && p.beside && b.Carrier != p.carrier {
		return // another Prober's
	}
	if err != nil || b.Kind != encap.ProbeRequest {
		p.watcher.Answer(packet, p.now()) // which counts what is wrong
		return
	}
	origin, ok := p.base.ByAddr(b.Origin)
	if !ok || origin == p.self || !p.echoes.take(p.now()) {
		p.stats.Refused++
		return
	}
	paths := p.base.Whole().Paths(p.self, origin)
	if int(b.Path) >= paths.Count() {
		p.stats.Refused++
		return
	}
	if _, err := encap.ReplyProbe(packet); err != nil {
		p.stats.Refused++
		return
	}
	p.watcher.Heard(origin, p.now())
	p.stats.Echoed++
	p.post(buf[:encap.MaxOverhead+encap.ProbeLen+b.Padding], paths.Addr(int(b.Path)), paths.Choices(int(b.Path)))
}

// Carriage says to which racks the carrier is used, as was delivered last, or will be
// next.
func (p *Prober) Carriage() *liveness.Carriage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watcher.Carriage()
}

// SetIdle says whether another carrier is in use instead: then this one is only kept
// proved, at a tenth of the cost.
func (p *Prober) SetIdle(idle bool) {
	p.mu.Lock()
	p.watcher.SetIdle(idle, p.now())
	p.mu.Unlock()
	p.nudge()
}

// observeEvery is how often the traffic is looked at.
const observeEvery = 10 * time.Millisecond

// Self is the host.
func (p *Prober) Self() topology.NodeID { return p.self }

// Paths says how the paths are, and why.
func (p *Prober) Paths() []liveness.PathHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watcher.Paths()
}

// Stats returns the counters.
func (p *Prober) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Watcher, s.Drops = p.watcher.Stats(), p.sockets.in.Drops()
	return s
}

// Close stops, and waits for a call of Deliver to end. It may be called more than
// once.
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
