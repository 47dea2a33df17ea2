package wire

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weft/internal/shortage"
)

// Ports are the open ports of a machine. Wait is for one goroutine; the other
// methods are safe for concurrent use, but not for a Handler's.
type Ports struct {
	interfaces []string
	poll       *poll

	mu       sync.Mutex // held by all that uses the descriptors
	closed   bool
	monitor  *monitor
	losses   *losses
	every    time.Duration // Config.CarrierEvery
	sockets  []*socket
	stats    []PortStats
	rejoined uint64
	batch    *batch
	handler  Handler  // during Wait
	initial  carriers // until the first Wait
}

// monitorTag marks the monitor among the ports' numbers.
const monitorTag = -1

// Open opens the ports in the network namespace of the calling thread, where they then
// stay. Opening a device needs no privilege if the process has no socket on it yet.
// Opening a device that replaces another needs CAP_NET_RAW.
func Open(c Config) (*Ports, error) {
	p := &Ports{interfaces: slices.Clone(c.Interfaces), batch: newBatch(), stats: make([]PortStats, len(c.Interfaces))}
	if err := p.open(c); err != nil {
		p.release()
		return nil, shortage.Explain(fmt.Errorf("topology updates: %w", err))
	}
	return p, nil
}

func (p *Ports) open(c Config) (err error) {
	if p.poll, err = newPoll(1 + len(c.Interfaces)); err != nil {
		return err
	}
	if p.monitor, err = openMonitor(c.Interfaces, orDefault(c.monitorBuffer, monitorBuffer)); err != nil {
		return err
	}
	p.losses, p.every = newLosses(len(c.Interfaces)), c.CarrierEvery
	p.monitor.join, p.monitor.report = p.join, func(port int, up bool) { p.handler.Carrier(port, up) }
	if err := p.poll.add(p.monitor.fd, monitorTag); err != nil {
		return err
	}
	for i := range c.Interfaces {
		s, err := openSocket(c.Shared, orDefault(c.ReceiveBuffer, DefaultReceiveBuffer))
		if err != nil {
			return err
		}
		p.sockets = append(p.sockets, s)
		if err := p.poll.add(s.fd, i); err != nil {
			return err
		}
	}
	p.initial = make(carriers, len(c.Interfaces))
	p.handler = p.initial
	return p.monitor.first()
}

// carriers is a Handler that remembers.
type carriers []bool

func (c carriers) Carrier(port int, up bool)       { c[port] = up }
func (c carriers) Receive(int, netip.Addr, []byte) {}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Missing returns the interfaces that do not exist.
func (p *Ports) Missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for i, s := range p.sockets {
		if s.index == 0 {
			names = append(names, p.interfaces[i])
		}
	}
	return names
}

// join makes a port's socket that of a device.
func (p *Ports) join(port int, device link) error {
	s := p.sockets[port]
	if s.bound {
		p.rejoined++
	}
	if err := s.join(device.index); err != nil {
		return fmt.Errorf("%s: %w", p.interfaces[port], err)
	}
	if p.every > 0 {
		p.losses.follow(port, device)
	}
	return nil
}

// Wait waits until something has happened, but at most until the deadline (zero: none),
// or for Config.CarrierEvery. It then calls the handler: first for changes of carrier,
// then for at most 16 messages of each port that has any. It returns net.ErrClosed after
// Close. Other errors are final, too.
func (p *Ports) Wait(deadline time.Time, h Handler) error {
	if p.initial != nil {
		deadline = time.Now() // there is something to tell
	}
	if soon := time.Now().Add(p.every); p.every > 0 && (deadline.IsZero() || soon.Before(deadline)) {
		deadline = soon
	}
	events, err := p.poll.wait(deadline)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return net.ErrClosed
	case err != nil:
		return fmt.Errorf("topology updates: %w", err)
	}
	p.handler = h
	for port, up := range p.initial {
		h.Carrier(port, up)
	}
	p.initial = nil
	for _, e := range events {
		if e.Fd != monitorTag {
			continue
		}
		if err := p.monitor.read(); err != nil {
			return fmt.Errorf("topology updates: %w", err)
		}
	}
	for port := range p.interfaces {
		if count, ok := p.losses.read(port); ok {
			p.monitor.lost(port, count)
		}
	}
	for _, e := range events {
		if e.Fd != monitorTag {
			p.receive(int(e.Fd))
		}
	}
	return nil
}

// receive hands over the messages of a port's turn.
func (p *Ports) receive(port int) {
	n := p.batch.receive(p.sockets[port])
	p.stats[port].Received += uint64(n)
	for i := range n {
		p.handler.Receive(port, p.batch.source(i), p.batch.message(i))
	}
}

// Send sends a message by a port. It does not wait: if the device's queue is full, the
// message is lost and counted.
func (p *Ports) Send(port int, message []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || port < 0 || port >= len(p.sockets) {
		return
	}
	// Without a device of its own a socket would choose one.
	if s := p.sockets[port]; s.index == 0 || s.send(message) != nil {
		p.stats[port].SendErrors++
		return
	}
	p.stats[port].Sent++
}

// Stats returns the counters.
func (p *Ports) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Ports: slices.Clone(p.stats), Overruns: p.monitor.overruns, Early: p.monitor.early, Rejoined: p.rejoined}
	for i := range s.Ports {
		if !p.closed {
			s.Ports[i].Dropped = p.sockets[i].drops()
		}
	}
	return s
}

// Close closes all ports and ends Wait. It may be called more than once.
func (p *Ports) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.release()
}

func (p *Ports) release() (err error) {
	if p.poll != nil {
		err = p.poll.close()
	}
	if p.monitor != nil {
		p.monitor.close()
	}
	if p.losses != nil {
		p.losses.close()
	}
	for _, s := range p.sockets {
		s.close()
	}
	return err
}
