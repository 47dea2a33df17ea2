// Package fabrictest is a Clos fabric in memory, in real time, for the tests of
// programs that run over weft: all switches, links with a rate, a delay and a queue, and
// a weft Host wherever a test wants one. It needs no privilege and no Linux.
//
//	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
//	defer f.Close()
//	server, err := f.Host("h3.1.3", stack.Config{})
//	client, err := f.Host("h0.0.2", stack.Config{Policy: "presto"})
//	l, err := server.Listen("tcp", ":80")
//	c, err := client.Dial("tcp", netip.AddrPortFrom(server.Address(), 80).String())
//	f.Fail("a0.2-c1.1") // and what the program makes of it
//
// Packets are real. Switches route, hash, take outer headers off, and drop what does not
// fit. Rates are low, some 100 Mbit/s in all: measurements here measure the machine.
package fabrictest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/internal/simnet"
	"weft/stack"
	"weft/topology"
)

// Config says what the links are like. Zero values mean the documented defaults.
type Config struct {
	// RateMbit is the rate of every link whose rate the topology does not say, in
	// Mbit/s. Default: 100.
	RateMbit float64
	// Delay is how long a packet takes along a link, besides its transmission. Default: 0.
	Delay time.Duration
	// QueueBytes is what a port holds before it drops. Default: 75,000.
	QueueBytes int
	// Seed determines how switches hash flows, and which packets are lost. The Hosts' TCP
	// runs in real time, so two runs never have the same packets.
	Seed uint64
}

// Fabric is a fabric in memory. It is safe for concurrent use.
type Fabric struct {
	whole  *topology.Topology
	runner *simnet.Runner

	mu    sync.Mutex
	now   *topology.Topology // without what Fail has taken down for all to know
	hosts map[topology.NodeID]*stack.Host
}

// New makes a fabric of a form that topology.Parse knows, such as "fat-tree:k=4".
func New(form string, c Config) (*Fabric, error) {
	t, err := topology.Parse(form)
	if err != nil {
		return nil, fmt.Errorf("fabrictest: %w", err)
	}
	if c.RateMbit == 0 {
		c.RateMbit = 100
	}
	n, err := simnet.New(t, simnet.Config{RateBits: int64(c.RateMbit * 1e6), QueueBytes: c.QueueBytes, Delay: c.Delay, Seed: c.Seed})
	if err != nil {
		return nil, fmt.Errorf("fabrictest: %w", err)
	}
	return &Fabric{whole: t, now: t, runner: simnet.Start(n, 0), hosts: make(map[topology.NodeID]*stack.Host)}, nil
}

// Topology returns the fabric's topology, without the links that all know to be down.
func (f *Fabric) Topology() *topology.Topology {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Host puts a Host on a node, by its name or address: "h0.0.2", "10.0.0.2". c needs
// no Address, Topology and Device: they are the node's. A node has one Host. Close
// ends it, and so may the caller.
func (f *Fabric) Host(node string, c stack.Config) (*stack.Host, error) {
	n, err := f.whole.Lookup(node)
	if err != nil {
		return nil, fmt.Errorf("fabrictest: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.hosts == nil:
		return nil, errors.New("fabrictest: the fabric is closed")
	case n.Layer != topology.LayerHost:
		return nil, fmt.Errorf("fabrictest: %s is a switch: name a host", n.Name)
	case f.hosts[n.ID] != nil:
		return nil, fmt.Errorf("fabrictest: there is a Host on %s already", n.Name)
	}
	c.Address, c.Topology, c.Device = f.whole.EmbeddedAddr(n.ID), f.now, f.runner.Device(n.ID)
	h, err := stack.New(c)
	if err != nil {
		return nil, err
	}
	f.hosts[n.ID] = h
	return h, nil
}

// Fail takes links ("a0.2-c1.1") or switches ("c1.1", "3.0") down and tells all: switches
// route round them, and Hosts avoid them. It does at once what link-state updates do.
func (f *Fabric) Fail(names ...string) error { return f.change(names, true, true) }

// FailSilently takes links or switches down and tells nobody: they swallow packets. A Host
// with stack.Config.Liveness finds out.
func (f *Fabric) FailSilently(names ...string) error { return f.change(names, true, false) }

// Heal undoes both.
func (f *Fabric) Heal(names ...string) error { return f.change(names, false, true) }

func (f *Fabric) change(names []string, down, told bool) error {
	links, err := f.links(names)
	if err != nil {
		return fmt.Errorf("fabrictest: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts == nil {
		return errors.New("fabrictest: the fabric is closed")
	}
	next := f.now.With(links...)
	if down && told {
		next = f.now.Without(links...)
	}
	if !told {
		next = f.now
	}
	f.runner.Inspect(func(n *simnet.Network) {
		for _, l := range links {
			for _, d := range []simnet.Direction{simnet.Upward, simnet.Downward} {
				err = errors.Join(err, n.Impair(l, d, simnet.Impairment{Down: down}))
			}
		}
		err = errors.Join(err, n.SetTopology(next))
	})
	f.now = next
	for _, h := range f.hosts {
		err = errors.Join(err, h.SetTopology(next))
	}
	return err
}

// links returns the links of names, which are links' or switches'.
func (f *Fabric) links(names []string) (all []topology.LinkID, err error) {
	for _, name := range names {
		if strings.Contains(name, "-") {
			l, err := f.whole.LinkByName(name)
			if err != nil {
				return nil, err
			}
			all = append(all, l.ID)
			continue
		}
		n, err := f.whole.Lookup(name)
		if err != nil {
			return nil, err
		}
		if n.Layer == topology.LayerHost {
			return nil, fmt.Errorf("%s is a host: name a switch or a link", n.Name)
		}
		for _, p := range f.whole.Ports(n.ID) {
			if !slices.Contains(all, p.Link) {
				all = append(all, p.Link)
			}
		}
	}
	return all, nil
}

// Carried returns the bytes of packets that a link has carried towards the core and
// back, by its name.
func (f *Fabric) Carried(link string) (up, down uint64, err error) {
	l, err := f.whole.LinkByName(link)
	if err != nil {
		return 0, 0, fmt.Errorf("fabrictest: %w", err)
	}
	f.runner.Inspect(func(n *simnet.Network) {
		u, d := n.Link(l.ID)
		up, down = u.Bytes, d.Bytes
	})
	return up, down, nil
}

// Close ends all Hosts and the fabric. It may be called more than once.
func (f *Fabric) Close() error {
	f.mu.Lock()
	hosts := f.hosts
	f.hosts = nil
	f.mu.Unlock()
	var errs []error
	for _, h := range hosts {
		errs = append(errs, h.Close())
	}
	f.runner.Close()
	return errors.Join(errs...)
}
