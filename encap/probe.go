package encap

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

const (
	// ProbePort is both UDP ports of every probe.
	ProbePort = 9339
	// ProbeLen and ProbeLen6 are the lengths of a probe over IPv4 and IPv6 in bytes, without
	// the outer header and without padding.
	ProbeLen  = datagramHeaders + 24
	ProbeLen6 = datagramHeaders6 + 36
	// MaxProbeLen is the length of the longest probe of either family, with its padding.
	MaxProbeLen = 0xffff - MaxOverhead
	// ProbeTOS is network control by its top three bits and "low delay" to Linux's
	// rt_tos2priority. Probes must tell dead paths from full queues, so they overtake
	// queues where switches let them.
	ProbeTOS = 0xd0
)

const probeVersion = 1

var (
	probeDatagram = datagram{
		length: ProbeLen, most: MaxProbeLen, port: ProbePort, magic: 0x77667062 /* "wfpb" */, tos: ProbeTOS,
	}
	probeDatagram6 = datagram{
		length: ProbeLen6, most: MaxProbeLen, port: ProbePort, magic: probeDatagram.magic, tos: ProbeTOS,
	}
	// These are of a probe that waits in queues as data does. ECT(0) is the TOS of data: see
	// sampleDatagram.
	asDataDatagram, asDataDatagram6 = probeDatagram.of(ECT0), probeDatagram6.of(ECT0)
)

// ProbeKind says what a receiver does with a probe.
type ProbeKind uint8

// The kinds.
const (
	Boomerang    ProbeKind = iota + 1 // a bouncing switch sends it home by routing alone
	ProbeRequest                      // a target that runs weft turns it into a reply
	ProbeReply                        // comes back by the request's path
)

func (k ProbeKind) String() string {
	switch k {
	case Boomerang:
		return "boomerang"
	case ProbeRequest:
		return "request"
	case ProbeReply:
		return "reply"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Errors about probes, besides ErrTruncated and ErrChecksum. They are returned unwrapped.
var (
	ErrNotProbe     = errors.New("encap: not a probe")
	ErrProbeVersion = errors.New("encap: unknown version of a probe")
	ErrProbeKind    = errors.New("encap: unknown kind of probe, or not the kind asked for")
	ErrProbeAddress = errors.New("encap: a probe's addresses are not those of its kind")
)

// Probe is a packet that a host sends to learn whether a path is alive. It is the inner
// packet of IP-in-IP to the path's bouncing switch: IPv4 without options or IPv6 without
// extension headers, UDP from ProbePort to ProbePort, a payload and padding. A probe of a
// path's MTU is as long as its padding makes it. All is in network byte order.
//
// Over IPv4 the payload has 24 bytes:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Magic 77667062                         |
//	+---------------+---------------+-------------------------------+
//	|   Version 1   |      Kind     |              Path             |
//	+---------------+---------------+-------------------------------+
//	|                             Token                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                       Origin's address                        |
//	+---------------------------------------------------------------+
//	|                       Target's address                        |
//	+---------------------------------------------------------------+
//
// Over IPv6 it has 36 bytes. IPv6 has no ID, so Carrier and Via are in the payload. The
// addresses are those of the IP header alone, which UDP's checksum covers (RFC 8200 §8.1):
// the origin is the source, but of a reply the destination. The flow label is 0 and is
// ignored.
//
//	+---------------------------------------------------------------+
//	|                        Magic 77667062                         |
//	+---------------+---------------+-------------------------------+
//	|   Version 1   |      Kind     |              Path             |
//	+---------------+---------------+-------------------------------+
//	|                             Token                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                                                               |
//	|                  Via, or all 0 if there is none               |
//	|                                                               |
//	|                                                               |
//	+---------------+-----------------------------------------------+
//	|    Carrier    |                       0                       |
//	+---------------+-----------------------------------------------+
//
// A boomerang's target is its origin, and so are both addresses of its IP header; the
// switch that takes the outer header off routes it home.
type Probe struct {
	Kind ProbeKind
	// Path is the path's number for the pair of hosts. Where a path has the same number in
	// both directions, the reply takes it back.
	Path uint16
	// Via is the bouncing address, which tells the path where numbers differ between the
	// two directions. It is of the family of Origin. Over IPv4 it takes the first four bytes
	// of Padding, and a bit of the IPv4 ID says that it is there. The zero Addr means that
	// the number tells.
	Via netip.Addr
	// Token is the origin's own and comes back unchanged. Hosts that do not see the probe
	// must not be able to guess it.
	Token          uint64
	Origin, Target netip.Addr // of one family; equal for a boomerang
	// Carrier is the carrier of the probe. A host with several carriers answers by the
	// same one. Over IPv4 it is in the IPv4 ID. Peers without this feature send and ignore
	// 0, which is CarrierIPIP.
	Carrier Carrier
	// Padding is the number of bytes behind the payload. Peers without this feature take a
	// padded request for another program's datagram and do not answer.
	Padding int
	// AsData puts the probe into data's class, so that its round trip includes the queues
	// in which data waits. A reply has its request's class. Peers without this feature
	// reply in ProbeTOS.
	AsData bool
}

// ProbeLenFrom is the length of a probe of origin's family in bytes, without padding.
func ProbeLenFrom(origin netip.Addr) int {
	if origin.Unmap().Is6() {
		return ProbeLen6
	}
	return ProbeLen
}

// Len returns the length of the whole inner packet in bytes, with its padding.
func (p *Probe) Len() int { return ProbeLenFrom(p.Origin) + p.Padding }

// AppendProbe appends a whole inner packet to b, Len bytes. It fails if an address is
// missing, has a zone or is of another family than the others, the kind is unknown, Via has
// no room in the padding, a boomerang's addresses differ, or the packet would be longer than
// MaxProbeLen. b is then returned unchanged. It allocates only if b has no room for the
// packet.
func AppendProbe(b []byte, p Probe) ([]byte, error) {
	p.Origin, p.Target = p.Origin.Unmap(), p.Target.Unmap()
	if err := p.check(); err != nil {
		return b, err
	}
	n, size := len(b), p.Len()
	b = slices.Grow(b, size)[:n+size]
	clear(b[n:])
	p.put(b[n:])
	return b, nil
}

// check says what keeps a probe from being sent. Its addresses are unmapped.
func (p *Probe) check() error {
	six := p.Origin.Is6()
	switch {
	case !p.Origin.Is4() && !plain6(p.Origin):
		return fmt.Errorf("encap: a probe's origin %v is neither IPv4 nor IPv6 without a zone", p.Origin)
	case p.Target.Is4() == six || six && !plain6(p.Target):
		return fmt.Errorf("encap: a probe's target %v is not of the family of its origin %v, or has a zone", p.Target, p.Origin)
	case p.Kind < Boomerang || p.Kind > ProbeReply:
		return ErrProbeKind
	case p.Kind == Boomerang && p.Origin != p.Target:
		return ErrProbeAddress
	case p.Padding < 0 || p.Padding > MaxProbeLen-ProbeLenFrom(p.Origin):
		return ErrTooLong
	case !p.Via.IsValid():
		return nil
	case six && (!plain6(p.Via) || p.Via.IsUnspecified()):
		return fmt.Errorf("encap: a probe's Via %v is not IPv6, as its origin is, or has a zone, or is no address", p.Via)
	case !six && (!p.Via.Is4() || p.Padding < viaLen):
		return fmt.Errorf("encap: a probe's Via %v is not IPv4, as its origin is, or has no room in %d bytes of padding", p.Via, p.Padding)
	}
	return nil
}

// put writes all of a packet whose bytes are 0.
func (p *Probe) put(b []byte) {
	if p.Origin.Is6() {
		p.put6(b)
	} else {
		p.put4(b)
	}
}

// IsProbe reports whether a packet claims to be a probe: IPv4 without options, no
// fragment, or IPv6 without extension headers, with a possible length, the ports and the
// magic of a probe. It is for the hot path: other packets fail its first comparisons.
func IsProbe(packet []byte) bool {
	// One byte of the source port tells nearly all others. So little can be inlined.
	const port = ProbePort >> 8
	return len(packet) >= ProbeLen && (packet[20] == port || packet[ip6Overhead] == port) && isProbe(packet)
}

// isProbe is IsProbe for a packet of at least ProbeLen bytes.
func isProbe(packet []byte) bool {
	if packet[0]>>4 == 6 {
		return probeDatagram6.is6(packet)
	}
	return probeDatagram.is(packet)
}

// ParseProbe checks a whole inner packet, its checksums included, and decodes it. Bytes
// behind the packet's end (padding) are ignored.
//
// Errors: ErrNotProbe for packets that IsProbe refuses, ErrTruncated, ErrChecksum,
// ErrProbeVersion, ErrProbeKind, ErrProbeAddress.
func ParseProbe(packet []byte) (Probe, error) {
	if !IsProbe(packet) {
		return Probe{}, ErrNotProbe
	}
	if packet[0]>>4 == 6 {
		return parseProbe6(packet)
	}
	return parseProbe4(packet)
}

// ReplyProbe turns a request into its reply, in place, and returns the number of the path
// by which the reply goes back. Only the owner of the request's destination address may
// do so. A reply is as long as its request and goes to the address that the request
// claims as its source, so echoing amplifies nothing. The caller bounds its rate.
//
// Errors are ParseProbe's, and ErrProbeKind if the packet is no request. The packet is
// then unchanged.
func ReplyProbe(packet []byte) (path uint16, err error) {
	p, err := ParseProbe(packet)
	if err != nil {
		return 0, err
	}
	if p.Kind != ProbeRequest {
		return 0, ErrProbeKind
	}
	// A fresh TTL or hop limit, and ECN: a congestion mark, or a path's length, was the
	// request's own.
	p.Kind = ProbeReply
	b := packet[:p.Len()]
	clear(b)
	p.put(b)
	return p.Path, nil
}
