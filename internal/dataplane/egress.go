package dataplane

import (
	"fmt"
	"math"
	"sync"
	"time"

	"weft/flowcell"
	"weft/gso"
	"weft/internal/capture/tap"
	"weft/internal/clock"
)

// Egress takes packets from netstack, or from a kernel's programs, to the network. A
// packet goes through these stages, one after the other:
//
//	classify   destination, length, pieces           classify.go
//	cut        the unit of each piece                cut.go
//	choose     the path of a unit that begins        choose.go
//	wrap       the outer header, or the number       wrap.go
//	outlet     one of plain, super and tunnel        plain.go, super.go, tunnelsend.go
//
// classify also finds the packet's lane, which is that of its policy (lane.go). An egress
// embeds the lane of its own policy.
//
// It is safe for concurrent use.
type Egress struct {
	config Config
	counts bool // what is not TCP gets a number of its own in its flow
	seed   uint64
	clock  clock.Clock

	mu      sync.Mutex
	outlet  outlet
	longest int // inner packet, in bytes; a tunnel has its own bounds
	lane
	lanes []*lane                  // that one is the first
	timed bool                     // a lane asks what time it is
	flows *flowcell.Table[sending] // of units that are cut
	id    uint16                   // outer IPv4 ID
	stats EgressStats
	past  map[pathKey]*PathStats // counts of fabrics and policies gone by

	conns    *connPaths // nil if nobody asks for it
	heeding  []*heeding // of the lanes whose policy heeds
	sampler  *sampler   // nil in a tunnel, and of a Gateway
	flights  *flights   // has a lock of its own
	narrows  narrows
	evidence *evidence           // nil if nobody asks for it
	refuse   func(packet []byte) // takes, with the lock held, ICMP errors about what is too long; nil: nobody does
	tap      *tap.Tap            // where who captures sees packets; nil: nobody can
	suspect  func()              // told, with the lock held, that there are losses to report; nil if evidence is

	// In use during a call only.
	out       Outgoing
	segmenter gso.Segmenter
	others    []int // see choose
	turn      turn
}

// maxFlows is how many flows are cut at once. Above, one of those idle longest is
// forgotten: its next packet begins a new unit.
const maxFlows = 1 << 16

// NewEgress returns the egress for c. An error begins with the name of the field.
func NewEgress(c Config) (*Egress, error) {
	p, err := c.Validate()
	if err != nil {
		return nil, err
	}
	c.draw()
	own, err := newLane(&c, c.Topology, p, true)
	if err != nil {
		return nil, err
	}
	e := &Egress{
		config: c,
		seed:   c.Seed,
		clock:  clock.Or(c.Clock),

		lane:  *own,
		flows: flowcell.NewTable[sending](flowcell.TableConfig[sending]{Capacity: maxFlows, Seed: c.Seed}),

		past:    make(map[pathKey]*PathStats),
		flights: newFlights(c.Seed),
	}
	e.lanes = []*lane{&e.lane}
	if err := e.attach(&c); err != nil {
		return nil, err
	}
	e.adopt()
	return e, e.divert(c.Policies)
}

// attach makes the outlet.
func (e *Egress) attach(c *Config) error {
	if c.Tunnel != nil {
		t, err := newTunnel(*c.Tunnel)
		if err != nil {
			return fmt.Errorf("Tunnel.%w", err)
		}
		e.outlet, e.longest = newTunnelOutlet(e, t), math.MaxInt
		e.paths.tunnel = t
		e.counts = c.SprayDatagrams
		return nil
	}
	e.longest = c.MTU()
	if s := super(c.Device); s != nil {
		e.outlet = newSuperOutlet(e, s)
	} else {
		e.outlet = newPlainOutlet(e, c.Device)
	}
	return nil
}

// Send sends packets of at most the device's MTU less the outer header, or
// super-segments. describe turns each into an Outgoing, whose Parts it may reuse. Send
// only reads the bytes and does not keep them. Dropped packets are counted. It returns false
// if the device has taken none of them, and would have if its queue were not full.
func Send[T any](e *Egress, packets []T, describe func(T, *Outgoing)) (taken bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	sent, dropped := e.stats.Packets, e.stats.DeviceDrops
	for _, p := range packets {
		describe(p, &e.out)
		e.transmit(&e.out, now)
	}
	clear(e.out.Parts)
	e.finish(now)
	return e.stats.Packets > sent || e.stats.DeviceDrops == dropped
}

// now is the time where somebody needs it.
func (e *Egress) now() time.Duration {
	if e.timed {
		return e.clock.Now()
	}
	return 0
}

// transmit leads one packet, or super-segment, through all stages.
func (e *Egress) transmit(o *Outgoing, now time.Duration) {
	if !e.classify(o) {
		return
	}
	for i := 0; i < o.pieces && e.cut(o, i, now) && e.outlet.add(o, now); i++ {
	}
	e.outlet.end(o)
}

// finish writes what is left of a batch of packets, and tells whoever wants to know.
func (e *Egress) finish(now time.Duration) {
	e.outlet.flush()
	e.turn = turn{}
	if e.sampler != nil && e.sampler.probes.Due(now) {
		e.sampler.pump(now)
	}
	e.reportLosses()
}
