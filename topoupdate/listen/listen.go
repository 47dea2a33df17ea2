package listen

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"weft/topology"
	"weft/topoupdate"
	"weft/topoupdate/wire"
)

// Config configures a Listener.
type Config struct {
	Interface string             // the uplink
	Topology  *topology.Topology // the baseline
	Address   netip.Addr         // the host's own, of its kernel or of an embedded stack

	// Deliver is called with every new snapshot, by one goroutine, never twice at a time.
	// Changes during a call are delivered as one snapshot. It must not call Close.
	Deliver func(*topology.Topology)

	// Gateway is the next switch's address on the host's network, if it has one besides
	// its address in Topology. Unsigned messages are accepted only from these two.
	Gateway netip.Addr
	// Floor is the share of the paths to every rack that unsigned messages leave in use;
	// 0 is topoupdate.DefaultFloor.
	Floor float64

	// Keys, if any, authenticate messages. A From counts from Open.
	Keys topoupdate.Keys
	// MaxAge is the switches'; 0 is topoupdate's default.
	MaxAge time.Duration
}

// Listener listens until Close. Its methods are safe for concurrent use.
type Listener struct {
	deliver func(*topology.Topology)
	sources string  // from where unsigned messages are taken, for people
	next    string  // the edge switch
	floor   float64 // the part of the paths that they leave
	maxAge  time.Duration
	ports   *wire.Ports
	start   time.Time
	ended   chan struct{}

	mu      sync.Mutex
	machine *topoupdate.Listener
	carrier bool
	heard   time.Time // when something was received, if only to be rejected
	err     error     // why it has ended
}

// Open begins to listen, in the network namespace of the calling thread. Several
// Listeners may use one interface.
func Open(c Config) (*Listener, error) {
	l, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("listen to topology updates: %w", err)
	}
	go l.run()
	return l, nil
}

func open(c Config) (*Listener, error) {
	switch {
	case c.Topology == nil:
		return nil, errors.New("Topology is missing: give the fabric's, such as topology.Parse(\"fat-tree:k=4\")")
	case c.Deliver == nil:
		return nil, errors.New("Deliver is missing: give a function that takes the snapshots, such as Host.SetTopology")
	}
	self, ok := c.Topology.ByAddr(c.Address)
	if !ok || c.Topology.Node(self).Layer != topology.LayerHost {
		return nil, fmt.Errorf("Address %s is no host of %s; its hosts begin with %s", c.Address, c.Topology, c.Topology.Node(0).Addr)
	}
	next := c.Topology.Node(c.Topology.EdgeOf(self))
	sources := []netip.Addr{next.Addr}
	if c.Gateway.IsValid() {
		sources = append(sources, c.Gateway)
	}
	machine, err := topoupdate.NewListener(topoupdate.ListenerConfig{Topology: c.Topology, Self: self, Keys: c.Keys, MaxAge: c.MaxAge, Sources: sources, Floor: c.Floor})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(sources))
	for i, a := range sources {
		names[i] = a.String()
	}
	floor := c.Floor
	if floor == 0 {
		floor = topoupdate.DefaultFloor
	}
	ports, err := wire.Open(wire.Config{Interfaces: []string{c.Interface}, Shared: true})
	if err != nil {
		return nil, err
	}
	if len(ports.Missing()) > 0 {
		ports.Close()
		return nil, fmt.Errorf("Interface %q: no such device in this network namespace; name the uplink", c.Interface)
	}
	return &Listener{deliver: c.Deliver, sources: strings.Join(names, " and "), next: next.Name, floor: floor, maxAge: cmp.Or(c.MaxAge, topoupdate.DefaultMaxAge), ports: ports, start: time.Now(), ended: make(chan struct{}), machine: machine}, nil
}

// longest is how long the goroutine sleeps at most.
const longest = time.Hour

func (l *Listener) run() {
	defer close(l.ended)
	last := l.Topology()
	for {
		l.mu.Lock()
		next := min(l.machine.Next(), time.Since(l.start)+longest)
		l.mu.Unlock()
		err := l.ports.Wait(l.start.Add(next), handler{l})
		l.mu.Lock()
		if err != nil {
			l.err = err
			l.mu.Unlock()
			return
		}
		l.machine.Tick(time.Since(l.start))
		now := l.machine.Topology()
		l.mu.Unlock()
		if now != last {
			last = now
			l.deliver(now)
		}
	}
}

// handler is a Listener as package wire sees it.
type handler struct{ l *Listener }

func (h handler) Carrier(_ int, up bool) {
	l := h.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carrier = up
}

func (h handler) Receive(_ int, from netip.Addr, message []byte) {
	l := h.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
	l.machine.Receive(message, from, l.heard.Sub(l.start))
}

// Topology returns the newest snapshot, at first the baseline.
func (l *Listener) Topology() *topology.Topology {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Topology()
}

// SetKeys replaces the keys. A From counts from Open; see Config.
func (l *Listener) SetKeys(k topoupdate.Keys) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.SetKeys(k)
}

// Close stops listening and waits for a running call of Deliver. It may be called more
// than once.
func (l *Listener) Close() error {
	err := l.ports.Close()
	<-l.ended
	return err
}

// trust says why updates are believed.
func (l *Listener) trust() string {
	demanded, heard := l.machine.Signed()
	switch {
	case demanded:
		return "signed: only updates with a known key are believed"
	case heard:
		return "signed; accept_unsigned also lets unsigned updates in when signed ones end: remove it when every switch has a key"
	}
	return fmt.Sprintf("UNSIGNED: believed from %s, but %.0f %% of the paths to every rack stay in use; weft keygen makes a key", l.sources, 100*l.floor)
}

// refused says why nothing that is heard is believed.
func (l *Listener) refused() string {
	why, refused := l.machine.Refused()
	if !refused {
		return ""
	}
	switch why {
	case topoupdate.RejectKey, topoupdate.RejectMAC:
		return "the switches' updates are refused: failures.keys are not the switches', or their time has not come"
	case topoupdate.RejectFabric:
		return fmt.Sprintf("the switches' updates are refused: they are of another fabric than topology: %v", l.machine.Topology().Whole())
	case topoupdate.RejectSender:
		return "the switches' updates are refused: they come from another switch than this host's; is address: right, and is this the port that it is cabled to?"
	case topoupdate.RejectSource:
		return "the switches' updates are refused: they are not signed, and do not come from " + l.sources + "; is gateway: right?"
	}
	return fmt.Sprintf("the switches' updates are refused: %v", why)
}

// Refused returns Status's Refused.
func (l *Listener) Refused() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused()
}

// quiet is the part of MaxAge after which silence is told. The switches repeat what they know
// at least twice in that time, by default four times, and each of them does.
const quiet = 0.4

// silent says that nothing comes any more, if something came before and nothing has for long.
// What was heard holds until MaxAge, so a host would believe for long what is not so any more.
func silent(heard, maxAge time.Duration, carrier bool, next string) string {
	if !carrier || heard.Seconds() < quiet*maxAge.Seconds() {
		return ""
	}
	return fmt.Sprintf("no update of the switches (UDP port %d) has come for %.0f s, and they repeat what they know every few seconds: something filters them, or weft switch has ended at %s, the next switch",
		topoupdate.Port, heard.Seconds(), next)
}

// Status is the state of a Listener.
type Status struct {
	Carrier  bool               `json:"carrier"`
	Trust    string             `json:"trust"`   // why updates are believed, and up to which bound
	Heard    float64            `json:"heard_s"` // seconds since the last message; -1: none yet
	Down     []string           `json:"down"`    // links that are down, including those of the baseline
	Held     int                `json:"held"`    // links that unsigned updates report down and the floor keeps in use
	Switches int                `json:"switches"`
	Received uint64             `json:"received"`
	Rejected map[string]uint64  `json:"rejected,omitempty"`
	Refused  string             `json:"refused,omitempty"` // why no message is believed, "" if some are
	Silent   string             `json:"silent,omitempty"`  // that nothing comes any more, "" if something does
	Changed  uint64             `json:"changed"`           // entries with news
	Wire     wire.Stats         `json:"wire"`
	Error    string             `json:"error,omitempty"` // why it has ended by itself
	Database []topoupdate.Entry `json:"-"`
}

// Status returns the state of the Listener.
func (l *Listener) Status() Status {
	wires := l.ports.Stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	stats := l.machine.Stats()
	s := Status{
		Carrier: l.carrier, Heard: -1, Down: []string{}, Wire: wires, Database: l.machine.Database(),
		Received: stats.Received, Rejected: stats.Rejected.ByName(), Changed: stats.Changed,
	}
	s.Switches, s.Held, s.Trust, s.Refused = len(s.Database), l.machine.Held(), l.trust(), l.refused()
	if !l.heard.IsZero() {
		heard := time.Since(l.heard)
		s.Heard, s.Silent = heard.Seconds(), silent(heard, l.maxAge, l.carrier, l.next)
	}
	t := l.machine.Topology()
	for _, id := range t.Down() {
		s.Down = append(s.Down, t.LinkName(id))
	}
	if l.err != nil && !errors.Is(l.err, net.ErrClosed) {
		s.Error = l.err.Error()
	}
	return s
}
