package dataplane

import (
	"fmt"
	"sync"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/gso"
	"weft/internal/clock"
	"weft/link"
	"weft/policy"
)

// Egress takes packets from netstack to the device: classify, cut, choose a
// path, encapsulate.
type Egress struct {
	config Config
	dev    Device
	super  SuperDevice   // what dev has besides, nil if nothing
	tunnel *tunnelSender // in place of dev; nil if there is none
	uplink bool          // below the device somebody encapsulates, by the number in the packet

	seed       uint64
	clock      clock.Clock
	timestamps bool // Config.Timestamps

	mu    sync.Mutex
	paths *pathTable
	flows *flowcell.Table[sending] // of units that are cut
	bufs  [][]byte                 // one per packet of a batch, headroom and longest long
	views [][]byte                 // what of bufs goes to the device
	id    uint16                   // outer IPv4 ID
	stats EgressStats
	past  map[pathKey]*PathStats // counts of fabrics and policies gone by

	longest int // packet that there is room for; a tunnel has its own bounds

	aware       aware // nil if the policy goes by nothing but its Rule
	awareConfig awareConfig
	informed    *informed // that aware is, or nil
	sampler     Sampler   // nil in a tunnel, and of a Gateway

	flights  *flights // has a lock of its own
	narrows  narrows
	evidence *evidence           // nil if nobody asks for it
	refuse   func(packet []byte) // takes, with the lock held, ICMP errors about what is too long; nil: nobody does
	suspect  func()              // told, with the lock held, that there are losses to report; nil if evidence is

	// In use during a call only.
	out       Outgoing
	segmenter gso.Segmenter
	head      [link.VnetHeaderLen + MaxHeaders]byte // of a super-segment
	parts     [][]byte
}

// sending is what is remembered of a flow that is cut into units.
type sending struct {
	cutter   flowcell.Cutter
	via      *pathOut // of the unit under way; nil while no path is live
	group    uint32   // the latest one to have via found in
	sequence uint32   // of what is not TCP: packets sent, where the receiver goes by it
}

const (
	// egressBatch is the most packets that go to the device in one call.
	egressBatch = 64
	// maxFlows is how many flows are cut at once. Above, one of those idle
	// longest is forgotten: its next packet begins a new unit.
	maxFlows = 1 << 16
)

// NewEgress returns one as c says. An error begins with the name of the field.
func NewEgress(c Config) (*Egress, error) {
	p, err := c.Validate()
	if err != nil {
		return nil, err
	}
	c.draw()
	e := newEgress(c, p)
	if c.Tunnel != nil {
		t, err := newTunnel(*c.Tunnel)
		if err != nil {
			return nil, fmt.Errorf("Tunnel.%w", err)
		}
		e.tunnel = newTunnelSender(t)
		e.paths.tunnel = t
	}
	return e, e.beAware(newAwareConfig(&c, p))
}

func newEgress(c Config, p policy.Policy) *Egress {
	e := &Egress{
		config: c,
		dev:    c.Device,
		super:  super(c.Device),
		uplink: c.UplinkEncapsulates && p.Unit.Kind != flowcell.UnitPacket,

		seed:       c.Seed,
		clock:      clock.Or(c.Clock),
		timestamps: c.Timestamps,
		paths:      newPathTable(c.Topology, c.Address, p, c.Carrier, c.SprayDatagrams, c.Seed),
		flows:      flowcell.NewTable[sending](flowcell.TableConfig[sending]{Capacity: maxFlows, Seed: c.Seed}),

		past:    make(map[pathKey]*PathStats),
		flights: newFlights(c.Seed),
	}
	if c.Tunnel != nil {
		return e
	}
	e.longest = c.MTU()
	e.bufs, e.views = make([][]byte, egressBatch), make([][]byte, 0, egressBatch)
	for i := range e.bufs {
		e.bufs[i] = make([]byte, Headroom+e.longest)
	}
	return e
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
	e.flush()
	if e.sampler != nil && e.sampler.Due(now) {
		e.sampler.Pump(now)
	}
	e.reportLosses()
}

// now is the time where somebody needs it.
func (e *Egress) now() time.Duration {
	if e.paths.policy.Unit.Cuts() || e.aware != nil {
		return e.clock.Now()
	}
	return 0
}

// transmit sends a packet or adds it, or its segments, to the batch.
func (e *Egress) transmit(o *Outgoing, now time.Duration) {
	if len(e.narrows.all) > 0 {
		e.fit(o)
	}
	if e.tunnel != nil {
		e.sendTunnel(o, now)
		return
	}
	if o.MSS == 0 {
		e.queue(o, now)
		return
	}
	var pkt flowcell.Packet
	if err := pkt.ParseHeaders(o.Parts[0], o.size); err != nil || pkt.Fragment {
		e.stats.Malformed++
		return
	}
	pair := e.paths.to(pkt.Flow.Dst)
	if head := pkt.Length - int(pkt.Payload); !e.fits(pair, &pkt, o.Parts[0], head+min(o.MSS, int(pkt.Payload))) {
		return
	}
	if e.super != nil && pkt.IsTCP() && !o.narrow && o.size <= e.super.MaxSuper() && (pair.plain() || e.uplink) {
		e.whole(o, pair, &pkt, now)
		return
	}
	e.segment(o, pair, &pkt, now)
}

// Headroom is what is before a packet in a buffer: room for a SuperDevice and
// for the outer header.
const Headroom = link.SuperHeadroom + encap.MaxOverhead

// queue prepares one packet in the next buffer of the batch.
func (e *Egress) queue(o *Outgoing, now time.Duration) {
	buf := e.bufs[len(e.views)]
	n := Headroom
	if o.size > e.longest {
		e.tooLong(o.Parts[0], e.longest, e.paths.address)
		return
	}
	for _, s := range o.Parts {
		n += copy(buf[n:], s)
	}
	if out := e.wrap(buf[link.SuperHeadroom:n], now); out != nil {
		e.put(buf, n-len(out), n, o)
	}
}

// wrap makes a packet ready for the device: it lies in buf behind headroom for
// the outer header. wrap returns what of buf is to be sent; nil if the packet is
// dropped, and counted.
func (e *Egress) wrap(buf []byte, now time.Duration) []byte {
	inner := buf[encap.MaxOverhead:]
	var pkt flowcell.Packet
	if err := pkt.Parse(inner); err != nil {
		e.stats.Malformed++
		return nil
	}
	if pkt.Flags&flowcell.FlagSYN != 0 && !e.timestamps && inner[0]>>4 == 4 {
		StripTimestamps(inner)
	}
	pair := e.paths.to(pkt.Flow.Dst)
	if !e.fits(pair, &pkt, inner, pkt.Length) {
		return nil
	}
	c, ok := e.course(pair, &pkt, int(pkt.Payload), 1, now)
	if !ok {
		return nil
	}
	if e.evidence != nil {
		e.observe(pair, &pkt, c, 0, int(pkt.Payload), 0)
	}
	return e.encapsulate(buf, c, now)
}

// encapsulate finishes a packet in buf behind headroom for the outer header, and
// returns what of buf is to be sent; nil if the packet is dropped, and counted.
func (e *Egress) encapsulate(buf []byte, c decision, now time.Duration) []byte {
	inner := buf[encap.MaxOverhead:]
	if c.via == nil {
		return inner
	}
	switch {
	case c.marked || c.reports:
		e.stamp(inner, c, now)
	case c.numbered:
		c.number.Stamp(inner)
	}
	if e.uplink {
		e.stats.Encapsulated++
		return inner
	}
	e.id++
	out, err := c.via.encapsulate(buf, c.to, e.id)
	if err != nil {
		e.stats.Malformed++
		return nil
	}
	c.via.packets++
	c.via.bytes += uint64(len(out))
	e.stats.Encapsulated++
	return out
}

// put adds a packet, which lies in buf from start to end, to the batch.
func (e *Egress) put(buf []byte, start, end int, o *Outgoing) {
	// The checksum is inside of the inner packet, which ends at end, too.
	inner := Headroom - start
	switch {
	case e.super != nil:
		var h link.VnetHeader
		if o.Partial {
			h = link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: o.CsumStart + uint16(inner), CsumOffset: o.CsumAt}
		}
		h.Put((*[link.VnetHeaderLen]byte)(buf[start-link.VnetHeaderLen:]))
	case o.Partial:
		complete(buf[Headroom:end], int(o.CsumStart), int(o.CsumAt))
	}
	e.views = append(e.views, buf[start-link.SuperHeadroom:end])
	if len(e.views) == egressBatch {
		e.flush()
	}
}

func (e *Egress) flush() {
	if len(e.views) == 0 {
		return
	}
	n := e.WriteLocked(e.views)
	e.stats.DeviceDrops += uint64(len(e.views) - n)
	e.stats.Packets += uint64(n)
	e.views = e.views[:0]
}
