package stack

import (
	"net/netip"
	"sync"
	"time"

	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/encap"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// egress takes packets from netstack to the device: classify, cut, choose a
// path, encapsulate.
type egress struct {
	dev        Device
	seed       uint64
	clock      Clock
	timestamps bool // Config.Timestamps

	mu    sync.Mutex
	paths *pathTable
	flows *flowcell.Table[sending] // of units that are cut
	bufs  [][]byte                 // one per packet of a batch, headroom and MTU long
	views [][]byte                 // what of bufs goes to the device
	id    uint16                   // outer IPv4 ID
	stats EgressStats
	past  map[netip.Addr]*PathStats // counts of topologies gone by
}

// sending is what is remembered of a flow that is cut into units.
type sending struct {
	cutter flowcell.Cutter
	via    *pathOut // of the unit under way; nil while no path is live
}

const (
	// egressBatch is the most packets that go to the device in one call.
	egressBatch = 64
	// maxFlows is how many flows are cut at once. Above, one of those idle
	// longest is forgotten: its next packet begins a new unit.
	maxFlows = 1 << 16
)

func newEgress(c Config, p policy.Policy, seed uint64) *egress {
	e := &egress{
		dev:        c.Device,
		seed:       seed,
		clock:      c.Clock,
		timestamps: c.Timestamps,
		paths:      newPathTable(c.Topology, c.Address, p, c.SprayDatagrams, seed),
		flows:      flowcell.NewTable[sending](flowcell.TableConfig[sending]{Capacity: maxFlows, Seed: seed}),
		bufs:       make([][]byte, egressBatch),
		views:      make([][]byte, 0, egressBatch),
		past:       make(map[netip.Addr]*PathStats),
	}
	if e.clock == nil {
		e.clock = newRealClock()
	}
	for i := range e.bufs {
		e.bufs[i] = make([]byte, c.Device.MTU())
	}
	return e
}

// send takes packets of at most the endpoint's MTU and returns how many it
// dealt with, drops included: they are counted here, and TCP repairs them.
func (e *egress) send(pkts []*gstack.PacketBuffer) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	var now time.Duration
	if e.paths.policy.Unit.Cuts() { // nobody else asks for the time
		now = e.clock.Now()
	}
	for _, p := range pkts {
		e.queue(p, now)
		if len(e.views) == egressBatch {
			e.flush()
		}
	}
	e.flush()
	return len(pkts)
}

// queue prepares one packet in the next buffer of the batch.
func (e *egress) queue(p *gstack.PacketBuffer, now time.Duration) {
	buf := e.bufs[len(e.views)]
	n := encap.Overhead
	if n+p.Size() > len(buf) {
		e.stats.TooLong++
		return
	}
	for _, s := range p.AsSlices() {
		n += copy(buf[n:], s)
	}
	if out := e.wrap(buf[:n], 1, now); out != nil {
		e.views = append(e.views, out)
	}
}

// wrap makes a packet ready for the device: it lies in buf behind headroom for
// the outer header, and a kernel will cut it into so many segments. wrap
// returns what of buf is to be sent; nil if the packet is dropped, and counted.
func (e *egress) wrap(buf []byte, segments int, now time.Duration) []byte {
	inner := buf[encap.Overhead:]
	var pkt flowcell.Packet
	if err := pkt.Parse(inner); err != nil {
		e.stats.Malformed++
		return nil
	}
	if pkt.Flags&flowcell.FlagSYN != 0 && !e.timestamps && inner[0]>>4 == 4 {
		stripTimestamps(inner)
	}
	pair := e.paths.to(pkt.Flow.Dst)
	if pair.direct {
		e.stats.Direct++
		return inner
	}
	var out *pathOut
	if pkt.IsTCP() && e.paths.policy.Unit.Cuts() {
		out = e.cut(pair, &pkt, inner, segments, now)
	} else {
		out = e.choose(pair, &pkt)
	}
	if out == nil {
		e.stats.NoPath++
		return nil
	}
	if pkt.Payload > 0 && e.paths.policy.Sprays() && !e.paths.policy.Unit.Numbers() {
		// The receiver can tell what is late from what was sent again.
		pair.count = pair.count.Count()
		pair.count.Stamp(inner)
	}
	e.id++
	if err := out.header.Encapsulate(buf, e.id); err != nil {
		e.stats.Malformed++
		return nil
	}
	out.packets++
	out.bytes += uint64(len(buf))
	e.stats.Encapsulated++
	return buf
}

// choose picks a path for every packet, or by the flow's hash; nil if none is
// live.
func (e *egress) choose(p *pair, pkt *flowcell.Packet) *pathOut {
	t := e.paths
	if !t.policy.Sprays() || !pkt.IsTCP() && !t.spray {
		flow := pkt.Flow
		if !pkt.IsTCP() { // fragments have no ports, and must not take another path
			flow.SrcPort, flow.DstPort = 0, 0
		}
		return p.next(&p.flows, flow.Hash(e.seed))
	}
	if pkt.IsPureACK() {
		return p.next(&p.ack, 0)
	}
	return p.next(&p.data, 0)
}

// cut picks the path of a TCP packet's unit, nil if none is live, and writes the
// unit's number into the packet where it has one. What carries no payload goes
// beside the units: acknowledgements by paths of their own, the end of a
// connection with its last unit.
func (e *egress) cut(p *pair, pkt *flowcell.Packet, inner []byte, segments int, now time.Duration) *pathOut {
	if pkt.Payload == 0 {
		if !pkt.IsPureACK() {
			if f := e.flows.Get(&pkt.Flow, now); f != nil && f.via != nil && f.via.group == p.group {
				return f.via
			}
		}
		return p.next(&p.ack, 0)
	}
	f, added := e.flows.Use(&pkt.Flow, now)
	if added {
		f.cutter = flowcell.NewCutter(pkt.Flow.Hash(e.seed))
	}
	if f.via == nil || f.via.group != p.group { // the paths are others now
		f.cutter.End()
	}
	unit := e.paths.policy.Unit
	number, begins := f.cutter.Next(unit, int(pkt.Payload), segments, now)
	if begins {
		f.via = p.next(&p.data, 0)
	}
	if unit.Numbers() {
		number.Stamp(inner)
	}
	return f.via
}

func (e *egress) flush() {
	if len(e.views) == 0 {
		return
	}
	n, err := e.dev.Write(e.views, 0)
	if err != nil || n < len(e.views) {
		e.stats.DeviceDrops += uint64(len(e.views) - n)
	}
	e.stats.Packets += uint64(n)
	e.views = e.views[:0]
}

// reaches reports whether a path to dst is live.
func (e *egress) reaches(dst netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.paths.to(flowcell.AddressFrom(dst))
	return p.direct || len(p.group.live) > 0
}

// setTopology makes later packets use t.
func (e *egress) setTopology(t *topology.Topology) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.paths
	for _, g := range old.groups {
		g.addTo(e.past)
	}
	e.stats.PairsEvicted += old.evicted
	e.paths = newPathTable(t, old.address, old.policy, old.spray, e.seed)
}
