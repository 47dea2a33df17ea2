package fabric

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weft/encap"
)

// namedPacket is a packet with what is special about it.
type namedPacket struct {
	name  string
	bytes []byte
}

// sprayOracle says what the program must do with a packet that is sent as it
// is, in plain Go and from the same table.
type sprayOracle struct {
	own   []netip.Addr
	table sprayTable
	mtu   int
	cut   *cutOracle // nil: the program cuts nothing
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

// sent returns what leaves by the uplink for a packet of at least 20 bytes with
// version 4, nil if nothing does. random is the path's number under a random
// rule.
func (o sprayOracle) sent(packet []byte, random int) ([]byte, verdict) {
	return o.sentAs(packet, 1, random)
}

// sentAs is sent for a packet of so many segments.
func (o sprayOracle) sentAs(packet []byte, segments, random int) ([]byte, verdict) {
	src := netip.AddrFrom4([4]byte(packet[12:]))
	g := o.table.group(netip.AddrFrom4([4]byte(packet[16:])))
	if packet[9] == 4 || !slices.Contains(o.own, src) || g == nil {
		return packet, passed
	}
	if len(g.order) == 0 {
		return nil, noPath
	}
	header := int(packet[0]&15) * 4
	length := int(binary.BigEndian.Uint16(packet[2:]))
	if header < 20 || length < header || length > len(packet) {
		return nil, badLength
	}
	if len(packet)+20 > o.mtu {
		return nil, tooLong
	}
	packet = o.cut.number(packet, segments)
	step := g.step(packet)
	if g.mode == sprayRandom && numbered(packet) {
		step = random
	}
	h, err := encap.NewIPIP(src, g.order[step])
	if err != nil {
		panic(err) // a test's own mistake
	}
	b := append(make([]byte, encap.Overhead), packet...)
	if err := h.Encapsulate(b, binary.BigEndian.Uint16(packet[4:])); err != nil {
		panic(err)
	}
	return b, encapsulated
}

// group looks through all prefixes; there is one at most.
func (t sprayTable) group(dst netip.Addr) *sprayGroup {
	for prefix, g := range t {
		if prefix.Contains(dst) {
			return g
		}
	}
	return nil
}

// numbered reports TCP in one piece, whose ID counts.
func numbered(packet []byte) bool {
	return packet[0] == 0x45 && packet[9] == 6 && packet[6]&0x7f == 0x40 && packet[7] == 0 &&
		binary.BigEndian.Uint16(packet[2:]) >= 40
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
