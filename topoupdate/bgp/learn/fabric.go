package learn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"weft/topology"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

// Config says who the switches are, and who hears them.
type Config struct {
	AS        uint32             // this host's own, by which its switches know it
	Neighbors []session.Neighbor // the switches that the host is wired to
	// Addresses are the embedded Host's: one of IPv4 and, if it has IPv6, one of that. They are
	// of the prefixes of the rack, and not the kernel's.
	Addresses []netip.Addr
	Log       *slog.Logger // nil: none
}

func (c *Config) check() error {
	var count [2]int
	for _, a := range c.Addresses {
		if !a.IsGlobalUnicast() || a.Is4In6() || a.Zone() != "" {
			return fmt.Errorf("learn: Config.Addresses: %v is no global address of a host without a zone", a)
		}
		count[a.BitLen()/128]++
	}
	if count[0] != 1 || count[1] > 1 {
		return fmt.Errorf("learn: Config.Addresses are %v: give one IPv4 address of the rack and, if the Host has IPv6, one of that", c.Addresses)
	}
	return nil
}

// Host is who goes by what is learned; *stack.Host is one.
type Host interface {
	SetTopology(*topology.Topology) error
	SetTopology6(*topology.Topology) error
}

// source is what a Fabric hears from.
type source interface {
	Views() (bgp.Views, error)
	Changed() <-chan struct{}
	Close() error
}

// Fabric is a fabric as its switches tell of it. Its methods may be called concurrently.
type Fabric struct {
	config Config
	source source
	first  bgp.Views // at Open

	mu    sync.Mutex
	stop  context.CancelFunc // nil: nobody follows
	ended sync.WaitGroup
}

// tryAgain is when a Host is told again what it did not take.
const tryAgain = time.Second

// Open opens sessions with the switches, and returns when they have told of other racks, or
// when ctx ends, with what is missing. Close the Fabric after use. One Fabric may be open in a
// process, and one session with a switch from each of the machine's addresses: weft host has it
// if it runs beside.
func Open(ctx context.Context, c Config) (*Fabric, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l, err := Listen(Options{Config: session.Config{AS: c.AS, Neighbors: c.Neighbors, Log: c.Log}, See: func([]netip.Addr) []netip.Addr { return c.Addresses }})
	if err != nil {
		return nil, fmt.Errorf("learn: %w", err)
	}
	return open(ctx, c, l)
}

func open(ctx context.Context, c Config, s source) (*Fabric, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fabric{config: c, source: s}
	again := time.NewTicker(tryAgain) // patience may end with no news
	defer again.Stop()
	for {
		var err error
		if f.first, err = f.source.Views(); err == nil {
			return f, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("learn: %w: %w", context.Cause(ctx), err), f.Close())
		case <-s.Changed():
		case <-again.C:
		}
	}
}

// Topology is the fabric as it was told of when Open returned, for stack.Config.Topology.
func (f *Fabric) Topology() *topology.Topology { return f.first.Fabric }

// Topology6 is the same as the IPv6 address sees it, for stack.Config.Topology6; nil if there
// is no IPv6 address, or not all bouncing switches announce one.
func (f *Fabric) Topology6() *topology.Topology { return f.first.Fabric6 }

// Follow has a Host, which began with Topology and Topology6, go by the switches' news until
// Close. Ways that they withdraw are out of use at once. What is new in the fabric waits
// (bgp.Growth), so that news in bursts count once. IPv6 that comes later than the Host is not
// used. While the switches tell nothing, as when a session has ended, what they told before
// holds, and the Host's probes find out the rest. Follow fails if it was called before, or
// after Close.
func (f *Fabric) Follow(h Host) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		return errors.New("learn: Follow: it has a Host, or is closed")
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.ended.Go(func() { f.run(ctx, follower{host: h, base: f.first, log: f.config.Log}) })
	return nil
}

func (f *Fabric) run(ctx context.Context, w follower) {
	timer := time.NewTimer(0) // there may be news since Open
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.source.Changed():
		}
		now := time.Now()
		v, err := f.source.Views()
		w.hear(now, v, err)
		w.grow(now)
		timer.Stop()
		if at := w.next(now); !at.IsZero() {
			timer.Reset(at.Sub(now))
		}
	}
}

// Close ends the sessions. The Host goes on by what was told last.
func (f *Fabric) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		f.stop = func() {}
	}
	f.stop()
	f.ended.Wait()
	return f.source.Close()
}
