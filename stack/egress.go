package stack

import (
	"net/netip"
	"sync"

	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/encap"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// egress takes packets from netstack to the device: classify, choose a path,
// encapsulate.
type egress struct {
	dev  Device
	seed uint64

	mu    sync.Mutex
	paths *pathTable
	bufs  [][]byte // one per packet of a batch, headroom and MTU long
	views [][]byte // what of bufs goes to the device
	id    uint16   // outer IPv4 ID
	stats EgressStats
	past  map[netip.Addr]*PathStats // counts of topologies gone by
}

// egressBatch is the most packets that go to the device in one call.
const egressBatch = 64

func newEgress(c Config, p policy.Policy, seed uint64) *egress {
	e := &egress{
		dev:   c.Device,
		seed:  seed,
		paths: newPathTable(c.Topology, c.Address, p, c.SprayDatagrams, seed),
		bufs:  make([][]byte, egressBatch),
		views: make([][]byte, 0, egressBatch),
		past:  make(map[netip.Addr]*PathStats),
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
	for _, p := range pkts {
		e.queue(p)
		if len(e.views) == egressBatch {
			e.flush()
		}
	}
	e.flush()
	return len(pkts)
}

// queue prepares one packet in the next buffer of the batch.
func (e *egress) queue(p *gstack.PacketBuffer) {
	buf := e.bufs[len(e.views)]
	n := encap.Overhead
	if n+p.Size() > len(buf) {
		e.stats.TooLong++
		return
	}
	for _, s := range p.AsSlices() {
		n += copy(buf[n:], s)
	}
	pkt, err := flowcell.Parse(buf[encap.Overhead:n])
	if err != nil {
		e.stats.Malformed++
		return
	}
	pair := e.paths.to(netip.AddrFrom16(pkt.Flow.Dst).Unmap())
	if pair.direct {
		e.stats.Direct++
		e.views = append(e.views, buf[encap.Overhead:n])
		return
	}
	n0, ok := e.choose(pair, &pkt)
	if !ok {
		e.stats.NoPath++
		return
	}
	out := pair.group.out[n0]
	e.id++
	if err := out.header.Encapsulate(buf[:n], e.id); err != nil {
		e.stats.Malformed++
		return
	}
	out.packets++
	out.bytes += uint64(n)
	e.stats.Encapsulated++
	e.views = append(e.views, buf[:n])
}

// choose picks the path of a packet, false when none is live.
func (e *egress) choose(p *pair, pkt *flowcell.Packet) (int, bool) {
	t := e.paths
	if !t.policy.Sprays() || !pkt.IsTCP() && !t.spray {
		flow := pkt.Flow
		if !pkt.IsTCP() { // fragments have no ports, and must not take another path
			flow.SrcPort, flow.DstPort = 0, 0
		}
		return p.flows.Next(flow.Hash(e.seed))
	}
	if pkt.IsPureACK() {
		return p.ack.Next(0)
	}
	return p.data.Next(0)
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
	p := e.paths.to(dst)
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
