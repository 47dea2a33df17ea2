package hostprog

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weft/encap"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// sprayTable is the ways to all racks.
type sprayTable map[netip.Prefix]sprayWay

// sprayWay is a way to a rack and, instead of the program's words of it, what the
// topology says.
type sprayWay struct {
	*sprayGroup
	paths   topology.PathSet
	carrier encap.Carrier
	counted *uint64 // of the packet, if its flow is cut: the flowcells before its own; nil: its number says
}

func newSprayTable(t *topology.Topology, self topology.NodeID, p policy.Policy, c encap.Carrier) (sprayTable, error) {
	groups, err := newSprayGroups(self, p)
	if err != nil {
		return nil, err
	}
	racks, err := racksOf(t, self, c)
	if err != nil {
		return nil, err
	}
	table := make(sprayTable)
	for _, rack := range racks {
		g, err := groups.to(rack, t, 0)
		if err != nil {
			return nil, err
		}
		table[rack.prefix] = sprayWay{sprayGroup: g, paths: t.PathsOrAll(self, rack.edge), carrier: c}
	}
	return table, nil
}

// outer is the header of a step of the order.
func (w sprayWay) outer(src netip.Addr, step int) (encap.Outer, error) {
	n := w.visits[step]
	if w.carrier == encap.CarrierIPIP {
		return encap.NewIPIPOuter(src, w.paths.Addr(n))
	}
	sids, err := encap.SIDs(w.paths.Choices(n))
	if err != nil {
		return encap.Outer{}, err
	}
	return encap.NewSRv6Outer(topology.Addr6(src), sids)
}

// namedPacket is a packet with what is special about it.
type namedPacket struct {
	name  string
	bytes []byte
}

// sprayOracle says what the program must do with a packet that is sent as it
// is, in plain Go and from the same table.
type sprayOracle struct {
	own     []netip.Addr
	table   sprayTable
	mtu     int
	cut     *cutOracle // nil: the program cuts nothing
	require bool
}

// verdict says which counter a packet goes to.
type verdict int

const (
	encapsulated verdict = iota
	passed
	noPath
	tooLong
	badLength
)

// dropped reports whether a packet does not leave at all.
func (o sprayOracle) dropped(v verdict) bool {
	return o.require && v != encapsulated && v != passed
}

// sent returns what leaves by the uplink for a packet of at least 20 bytes with
// version 4, nil if nothing does. random is the path's step where it is a matter of
// chance.
func (o sprayOracle) sent(packet []byte, random int) ([]byte, verdict) {
	return o.sentAs(packet, 1, random, nil)
}

// sentAs is sent for a packet of so many segments; see prepare for left.
func (o sprayOracle) sentAs(packet []byte, segments, random int, left []byte) ([]byte, verdict) {
	packet, w, v := o.prepare(packet, segments, left)
	switch {
	case o.dropped(v):
		return nil, v
	case v != encapsulated:
		return packet, v
	}
	step := w.step(packet)
	if w.chance(packet) {
		step = random
	}
	return w.wrap(packet, step), v
}

// prepare says what becomes of a packet, and numbers it. left is what has left for
// it, outer header and all, nil if it is not known: when it was sent has a part in
// its number.
func (o sprayOracle) prepare(packet []byte, segments int, left []byte) ([]byte, sprayWay, verdict) {
	w, v := o.judge(packet)
	if v == encapsulated {
		packet, w.counted = o.cut.number(packet, segments, left[min(w.carrier.Overhead(), len(left)):])
	}
	return packet, w, v
}

// judge says what becomes of a packet.
func (o sprayOracle) judge(packet []byte) (sprayWay, verdict) {
	src := netip.AddrFrom4([4]byte(packet[12:]))
	w, ok := o.table.way(netip.AddrFrom4([4]byte(packet[16:])))
	if packet[9] == 4 || !slices.Contains(o.own, src) || !ok {
		return w, passed
	}
	if len(w.order) == 0 {
		return w, noPath
	}
	header := int(packet[0]&15) * 4
	length := int(binary.BigEndian.Uint16(packet[2:]))
	if header < 20 || length < header || length > len(packet) {
		return w, badLength
	}
	if len(packet)+w.carrier.Overhead() > o.mtu {
		return w, tooLong
	}
	return w, encapsulated
}

// wrap encapsulates for a step of the order.
func (w sprayWay) wrap(packet []byte, step int) []byte {
	h, err := w.outer(netip.AddrFrom4([4]byte(packet[12:])), step)
	if err != nil {
		panic(err) // a test's own mistake
	}
	b, err := h.Encapsulate(append(make([]byte, encap.MaxOverhead), packet...), binary.BigEndian.Uint16(packet[4:]))
	if err != nil {
		panic(err)
	}
	return b
}

// chance reports whether a packet may take any step.
func (w sprayWay) chance(packet []byte) bool {
	return (w.mode == sprayRandom || w.mode.draws()) && numbered(packet)
}

// stepOf finds the step by which a packet has left, -1 if by none.
func (w sprayWay) stepOf(packet, left []byte) int {
	for step := range w.order {
		if w.chance(packet) || step == w.step(packet) {
			if slices.Equal(left, w.wrap(packet, step)) {
				return step
			}
		}
	}
	return -1
}

// bounce is the switch at the top of a step's path.
func (w sprayWay) bounce(step int) netip.Addr { return w.paths.Addr(w.visits[step]) }

// way looks through all prefixes; there is one at most.
func (t sprayTable) way(dst netip.Addr) (sprayWay, bool) {
	for prefix, w := range t {
		if prefix.Contains(dst) {
			return w, true
		}
	}
	return sprayWay{}, false
}

// numbered reports TCP in one piece, whose ID counts.
func numbered(packet []byte) bool {
	return packet[0] == 0x45 && packet[9] == 6 && packet[6]&0x7f == 0x40 && packet[7] == 0 &&
		binary.BigEndian.Uint16(packet[2:]) >= 40
}

// step is that of the flowcell, of which super-segments of many segments skip numbers.
func (w sprayWay) step(packet []byte) int {
	if w.counted == nil || !numbered(packet) || w.mode != sprayByNumber {
		return w.sprayGroup.step(packet)
	}
	return int((tcpHash(packet)>>40 + *w.counted%flowcell.Cells) % uint64(len(w.order)))
}

func (g *sprayGroup) step(packet []byte) int {
	if !numbered(packet) {
		return int(mix64(binary.BigEndian.Uint64(packet[12:])) >> 40 % uint64(len(g.order)))
	}
	var at uint64
	if g.mode == sprayByNumber {
		at = uint64(binary.BigEndian.Uint16(packet[4:]) >> g.shift)
	}
	return int((tcpHash(packet)>>40 + at) % uint64(len(g.order)))
}

// tcpHash is the program's hash of a five-tuple.
func tcpHash(packet []byte) uint64 {
	return mix64(mix64(binary.BigEndian.Uint64(packet[12:])) ^ uint64(binary.BigEndian.Uint32(packet[20:])))
}

// mix64 is MurmurHash3's finaliser.
func mix64(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// rackOf is the prefix of a host's rack, in the oracle's own words (thesis §3.1.2).
func rackOf(host netip.Addr) netip.Prefix { return netip.PrefixFrom(host, 24).Masked() }
