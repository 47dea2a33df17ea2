package stack

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"weft/flowcell"
	"weft/internal/checksum"
	"weft/liveness"
	"weft/topology"
)

// CarriageDevice is what a TopologyDevice has besides if it encapsulates: the Host
// tells it to which racks packets are to go plain, and how long they may be. The
// first Carriage comes soon after New; until then all is plain. The rules of
// TopologyDevice hold, and a Carriage comes after the topology that it belongs to.
type CarriageDevice interface {
	SetCarriage(c *liveness.Carriage) error
}

// plain reports whether a pair's packets leave as they are: no bouncing switch is
// needed, or the carrier is not used to the rack.
func (p *pair) plain() bool { return p.direct || p.rack != nil && p.rack.plain }

// setCarriage makes later packets go by the carrier to those racks only to which it
// is used.
func (e *egress) setCarriage(c *liveness.Carriage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paths.carry(c)
}

func (t *pathTable) carry(c *liveness.Carriage) {
	t.carriage = c
	for _, r := range t.racks.racks {
		t.carryTo(r)
	}
}

// carryTo takes over what is known of a rack, which packets look at: no lookup is
// theirs.
func (t *pathTable) carryTo(r *rack) {
	r.plain, r.mtu = t.carriage.Plain(r.id), t.carriage.MTU(r.id)
}

// fits reports whether a packet of a size is not too long for the paths to its rack.
// If it is, it is counted, and its sender is told. head is the packet's beginning, with
// all headers.
func (e *egress) fits(p *pair, pkt *flowcell.Packet, head []byte, size int) bool {
	limit := e.longest
	if p.rack != nil && p.rack.mtu != 0 && (pkt.IsTCP() || !mayBeCut(head)) { // routers cut the others
		limit = min(limit, p.rack.mtu)
	}
	if size <= limit || e.tunnel != nil {
		return true
	}
	router := e.paths.address
	if p.rack != nil {
		router = e.paths.topo.Node(p.rack.id).Addr
	}
	e.tooLong(head, limit, router)
	return false
}

// tooLong counts a packet that is longer than a limit, and tells its sender as a router
// would (RFC 1191). head is the packet's beginning, with all headers.
func (e *egress) tooLong(head []byte, limit int, router netip.Addr) {
	e.stats.TooLong++
	if e.refuse == nil || head[0]>>4 != 4 || head[9] != flowcell.ProtoTCP && mayBeCut(head) {
		return
	}
	e.refuse(fragmentationNeeded(router, head, limit))
}

// mayBeCut reports whether routers may cut an IPv4 packet.
func mayBeCut(head []byte) bool {
	const dontFragment = 0x40
	return head[0]>>4 == 4 && head[6]&dontFragment == 0
}

// fragmentationNeeded is the ICMP error of a router about an IPv4 packet, of which it
// quotes the headers and a little more.
func fragmentationNeeded(router netip.Addr, packet []byte, mtu int) []byte {
	const headers, protocolICMP, unreachable, tooBig = 28, 1, 3, 4
	quote := packet[:min(len(packet), maxHeaders)]
	b := make([]byte, headers, headers+len(quote))
	b[0], b[8], b[9] = 0x45, 64, protocolICMP
	binary.BigEndian.PutUint16(b[2:], uint16(headers+len(quote)))
	copy(b[12:], packet[16:20]) // the destination, where nobody on the way has an IPv4 address
	if router.Is4() {
		copy(b[12:], router.AsSlice())
	}
	copy(b[16:], packet[12:16])
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(checksum.Sum(b[:20], 0)))
	b[20], b[21] = unreachable, tooBig
	binary.BigEndian.PutUint16(b[26:], uint16(mtu))
	b = append(b, quote...)
	binary.BigEndian.PutUint16(b[22:], ^checksum.Fold(checksum.Sum(b[20:], 0)))
	return b
}

// refusals gives a Host back the errors about packets that it sent itself. It must not
// happen while they are sent: netstack holds its locks.
type refusals struct {
	receive func(packet []byte)
	timer   Timer

	mu      sync.Mutex
	packets [][]byte
}

// maxRefused is how many errors wait at most; one for each connection is enough.
const maxRefused = 256

func newRefusals(clock Clock, receive func(packet []byte)) *refusals {
	r := &refusals{receive: receive}
	r.timer = clock.AfterFunc(time.Hour, r.deliver)
	r.timer.Stop()
	return r
}

// add takes an error, which becomes its own.
func (r *refusals) add(packet []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.packets) < maxRefused {
		r.packets = append(r.packets, packet)
		r.timer.Reset(0)
	}
}

func (r *refusals) deliver() {
	r.mu.Lock()
	packets := r.packets
	r.packets = nil
	r.mu.Unlock()
	for _, p := range packets {
		r.receive(p)
	}
}

// SetCarriage makes later packets leave plain, without the carrier, to those racks to
// which it is not proved, and tells the kernel of those that are too long for the
// paths to their rack. Connections stay. The Carriage must be of the topology in use;
// nil, as at the beginning, has the carrier used everywhere.
func (g *Gateway) SetCarriage(c *liveness.Carriage) { g.egress.setCarriage(c) }

// Carriage says to which racks the Host uses the carrier, and why not to others; nil
// without Config.Liveness: it is used everywhere.
func (h *Host) Carriage() *liveness.Carriage {
	if h.monitor == nil {
		return nil
	}
	h.monitor.mu.Lock()
	defer h.monitor.mu.Unlock()
	return h.monitor.driver.Carriage()
}

// sameFabric reports whether numbers of nodes mean the same in two topologies.
func sameFabric(a, b *topology.Topology) bool {
	return a != nil && b != nil && a.String() == b.String()
}
