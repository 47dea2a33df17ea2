package lookout

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/clock"
	"weft/internal/dataplane/dataplanetest"
	"weft/internal/probe"
	"weft/liveness"
	"weft/topology"
)

var fabric = dataplanetest.FatTree

// cut returns the fabric without a link.
func cut(t *testing.T, a, b string) *topology.Topology {
	return fabric.Without(dataplanetest.Between(t, fabric, a, b))
}

// mute is how a host looks out whose probes all get lost, and which sends hardly any.
func mute(c clock.Clock) Config {
	return Config{Clock: c, Probe: probe.Config{Topology: fabric, Address: dataplanetest.AddrA, Seed: 1, Budget: -1,
		Write: func([]byte, netip.Addr) error { return nil }}}
}

func start(t *testing.T, c Config) *Lookout {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	l.Start()
	return l
}

// plane notes what it is to go by.
type plane struct {
	topologies []*topology.Topology
	carriages  []*liveness.Carriage
}

func (p *plane) SetTopology(t *topology.Topology) { p.topologies = append(p.topologies, t) }
func (p *plane) SetCarriage(c *liveness.Carriage) { p.carriages = append(p.carriages, c) }

// The Plane knows at once what is new, and Tell when SetTopology returns or the timer has
// expired; both hear of each change once. What Tell does not take it is told again.
func TestLookout_tellsOnce(t *testing.T) {
	var c dataplanetest.HandClock
	var p plane
	var told []verdict
	var refuse error
	config := mute(&c)
	config.Probe.Interval = 5 * time.Second // hardly anything is due
	config.Plane = &p
	config.Tell = func(t *topology.Topology, by *liveness.Carriage) error {
		if refuse == nil {
			told = append(told, verdict{t, by})
		}
		return refuse
	}
	l := start(t, config)
	if len(p.topologies) != 0 || len(p.carriages) != 1 || len(told) != 0 {
		t.Fatalf("at the beginning: %+v, told %d", p, len(told))
	}
	refuse = errors.New("not yet")
	c.Run(0)
	refuse = nil
	c.Run(tellAgain + leastPause)
	if len(told) != 1 || told[0] != (verdict{l.Topology(), l.Carriage()}) || told[0].carriage != p.carriages[0] {
		t.Fatalf("told at first: %+v", told)
	}
	if err := l.SetTopology(cut(t, "a0.2", "c1.1")); err != nil {
		t.Fatal(err)
	}
	if len(p.topologies) != 1 || len(told) != 2 || told[1].topology != p.topologies[0] || len(told[1].topology.Down()) != 1 {
		t.Fatalf("with a link down: %d topologies, told %d", len(p.topologies), len(told))
	}
	c.Run(time.Second)
	if n := len(p.carriages) + len(p.topologies); len(told) > n || len(told) < 2 {
		t.Errorf("of %d changes %d are told", n, len(told))
	}

	refuse = errors.New("no room")
	before := len(told)
	if err := l.SetTopology(fabric); err != refuse {
		t.Errorf("Tell fails: %v", err)
	}
	c.Run(time.Second)
	refuse = nil
	c.Run(tellAgain + leastPause)
	if len(told) != before+1 || len(told[before].topology.Down()) != 0 {
		t.Errorf("then told: %+v", told[before:])
	}

	l.Close()
	if err := l.SetTopology(fabric); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetTopology after Close: %v", err)
	}
}

// narrow is a host whose boomerangs come home, but for those that are too long: errors do.
// home is what comes back.
func narrow(c clock.Clock, home *[][]byte) Config {
	config := mute(c)
	config.Probe.Budget, config.Probe.MTU = 0, 1500
	config.Probe.Write = func(packet []byte, via netip.Addr) error {
		inner := packet[20:]
		if len(packet) > 1400 {
			inner = dataplanetest.SwitchError(3, 4, 1400, via, inner, 64)
		}
		*home = append(*home, append(make([]byte, encap.MaxOverhead), inner...))
		return nil
	}
	return config
}

// What a packet brings to light is used at once and told by the timer: who brings the packet
// holds locks.
func TestLookout_takesWithoutTelling(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { takesWithoutTelling(t, narrow) })
	t.Run("IPv6", func(t *testing.T) {
		takesWithoutTelling(t, func(c clock.Clock, home *[][]byte) Config { return narrow6(t, c, home) })
	})
}

func takesWithoutTelling(t *testing.T, narrow func(clock.Clock, *[][]byte) Config) {
	var c dataplanetest.HandClock
	var p plane
	var home [][]byte
	told := 0
	config := narrow(&c, &home)
	config.Plane = &p
	config.Tell = func(*topology.Topology, *liveness.Carriage) error { told++; return nil }
	l := start(t, config)
	for range 200 {
		c.Run(time.Millisecond)
		used, before := len(p.carriages), told
		l.Take(home...)
		home = home[:0]
		if told != before {
			t.Fatal("Take tells")
		}
		if len(p.carriages) > used {
			if c.Run(0); told != before+1 {
				t.Errorf("then told %d times", told-before)
			}
			return
		}
	}
	t.Errorf("no error changes anything: %+v", l.Stats())
}

// What becomes new while Tell is called is told as soon as it returns.
func TestLookout_newsWhileTelling(t *testing.T) {
	var c dataplanetest.HandClock
	var home [][]byte
	var l *Lookout
	var told []time.Duration
	config := narrow(&c, &home)
	config.Tell = func(*topology.Topology, *liveness.Carriage) error {
		if told = append(told, c.Now()); len(told) > 1 {
			return nil
		}
		was := l.Carriage()
		for range 200 {
			c.Run(time.Millisecond)
			l.Take(home...)
			if home = home[:0]; l.Carriage() != was {
				break
			}
		}
		c.Run(0) // the timer expires, and leaves it to this call
		told[0] = c.Now()
		return nil
	}
	l = start(t, config)
	if c.Run(time.Second); len(told) < 2 || told[0] == 0 || told[1] != told[0] {
		t.Errorf("told at %v", told)
	}
}

// Somebody who is slow to take news keeps nobody waiting: probing goes on, no goroutines
// gather, and what has changed meanwhile is told next.
func TestLookout_slowToTell(t *testing.T) {
	var looks int
	var mu sync.Mutex
	release, entered := make(chan struct{}), make(chan *topology.Topology, 10)
	config := mute(clock.Real())
	config.Probe.Observe = func(*liveness.Watcher, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		looks++
	}
	config.Tell = func(t *topology.Topology, _ *liveness.Carriage) error {
		entered <- t
		<-release
		return nil
	}
	looked := func() int {
		mu.Lock()
		defer mu.Unlock()
		return looks
	}
	l, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	<-entered
	before := looked()
	dataplanetest.Eventually(t, "probing goes on", func() bool { return looked() > before+30 })
	if n := ticking(); n > 3 {
		t.Errorf("%d goroutines tick", n)
	}
	done := make(chan error, 1)
	go func() { done <- l.SetTopology(cut(t, "a0.2", "c1.1")) }()
	dataplanetest.Eventually(t, "the topology is in use", func() bool { return len(l.Topology().Down()) == 1 })
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for len((<-entered).Down()) != 1 {
	}
	l.Close()
}

// ticking counts the goroutines in which a timer has expired.
func ticking() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "(*Lookout).tick(")
}

// Close waits for Tell, and nothing is called afterwards.
func TestLookout_close(t *testing.T) {
	var mu sync.Mutex
	closed := false
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			t.Error("called after Close")
		}
	}
	for range 50 {
		config := mute(clock.Real())
		closed = false
		config.Tell = func(*topology.Topology, *liveness.Carriage) error { check(); return nil }
		config.Probe.Observe = func(*liveness.Watcher, time.Duration) { check() }
		l, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		l.Start()
		var all sync.WaitGroup
		all.Go(func() { l.SetTopology(cut(t, "a0.2", "c1.1")) })
		all.Go(func() { l.SetTopology(cut(t, "a0.2", "c1.2")) })
		l.Close()
		mu.Lock()
		closed = true
		mu.Unlock()
		all.Wait()
		l.Kick()
		l.Take(make([]byte, encap.MaxOverhead))
		mu.Lock()
		closed = false
		mu.Unlock()
	}
}

// The Journal hears of a change after Tell, and if Tell fails, too.
func TestLookout_journal(t *testing.T) {
	var c dataplanetest.HandClock
	var log bytes.Buffer
	config := mute(&c)
	config.Journal = NewJournal(slog.New(slog.NewTextHandler(&log, nil)), fabric, "ipip", 1480)
	config.Tell = func(*topology.Topology, *liveness.Carriage) error { return errors.New("no room") }
	start(t, config)
	c.Run(0)
	if n := strings.Count(log.String(), "\n"); n == 0 {
		t.Error("that packets go plain at first is not logged")
	}
	log.Reset()
	c.Run(50 * time.Millisecond)
	if log.Len() > 0 {
		t.Errorf("again: %s", &log)
	}
}
