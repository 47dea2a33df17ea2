package dataplane

import (
	"fmt"
	"math"
	"sync"
	"time"

	"weft/flowcell"
	"weft/gso"
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
// It is safe for concurrent use.
type Egress struct {
	config Config
	uplink bool // below the outlet a program encapsulates, by the number in the packet
	counts bool // what is not TCP gets a number of its own in its flow
	seed   uint64
	clock  clock.Clock

	mu      sync.Mutex
	outlet  outlet
	longest int // inner packet, in bytes; a tunnel has its own bounds
	paths   *pathTable
	flows   *flowcell.Table[sending] // of units that are cut
	id      uint16                   // outer IPv4 ID
	stats   EgressStats
	past    map[pathKey]*PathStats // counts of fabrics and policies gone by

	aware       aware // nil if the policy goes by nothing but its Rule
	awareConfig awareConfig
	informed    *informed // that aware is, or nil
	heeding     *heeding  // that aware is, or nil
	sampler     Sampler   // nil in a tunnel, and of a Gateway

	flights  *flights // has a lock of its own
	narrows  narrows
	evidence *evidence           // nil if nobody asks for it
	refuse   func(packet []byte) // takes, with the lock held, ICMP errors about what is too long; nil: nobody does
	suspect  func()              // told, with the lock held, that there are losses to report; nil if evidence is

	// In use during a call only.
	out       Outgoing
	segmenter gso.Segmenter
}

// maxFlows is how many flows are cut at once. Above, one of those idle longest is
// forgotten: its next packet begins a new unit.
const maxFlows = 1 << 16

// NewEgress returns one as c says. An error begins with the name of the field.
func NewEgress(c Config) (*Egress, error) {
	p, err := c.Validate()
	if err != nil {
		return nil, err
	}
	c.draw()
	e := &Egress{
		config: c,
		uplink: c.UplinkEncapsulates && p.Unit.Kind != flowcell.UnitPacket,
		seed:   c.Seed,
		clock:  clock.Or(c.Clock),

		paths: newPathTable(c.Topology, c.Address, p, c.Carrier, c.SprayDatagrams, c.Seed),
		flows: flowcell.NewTable[sending](flowcell.TableConfig[sending]{Capacity: maxFlows, Seed: c.Seed}),

		past:    make(map[pathKey]*PathStats),
		flights: newFlights(c.Seed),
	}
	if err := e.open(&c); err != nil {
		return nil, err
	}
	return e, e.beAware(newAwareConfig(&c, p))
}

// open makes the outlet.
func (e *Egress) open(c *Config) error {
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
// super-segments. describe makes an Outgoing of each, whose Parts it may reuse; the
// bytes are only read, and not kept. What is dropped is counted.
func Send[T any](e *Egress, packets []T, describe func(T, *Outgoing)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for _, p := range packets {
		describe(p, &e.out)
		e.transmit(&e.out, now)
	}
	clear(e.out.Parts)
	e.finish(now)
}

// now is the time where somebody needs it.
func (e *Egress) now() time.Duration {
	if e.paths.policy.Unit.Cuts() || e.aware != nil {
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
	if e.sampler != nil && e.sampler.Due(now) {
		e.sampler.Pump(now)
	}
	e.reportLosses()
}
