package encap

import (
	"encoding/binary"
	"net/netip"
)

// Offsets in the payload of a probe over IPv6, and of the token in the whole packet.
const (
	offVia6     = 16
	offCarrier6 = 32
	offToken6   = datagramHeaders6 + 8
)

// put6 is put for IPv6.
func (p *Probe) put6(b []byte) {
	payload := b[datagramHeaders6:]
	payload[4] = probeVersion
	payload[5] = byte(p.Kind)
	binary.BigEndian.PutUint16(payload[6:], p.Path)
	binary.BigEndian.PutUint64(payload[8:], p.Token)
	if p.Via.IsValid() {
		via := p.Via.As16()
		copy(payload[offVia6:], via[:])
	}
	payload[offCarrier6] = byte(p.Carrier)
	from, to := p.Origin.As16(), p.Target.As16()
	if p.Kind == ProbeReply {
		from, to = to, from
	}
	if p.AsData {
		asDataDatagram6.finish6(b, from, to)
	} else {
		probeDatagram6.finish6(b, from, to)
	}
}

// parseProbe6 is ParseProbe for a packet that claims to be a probe over IPv6.
func parseProbe6(packet []byte) (Probe, error) {
	b := packet[:ip6Overhead+int(binary.BigEndian.Uint16(packet[4:]))]
	if err := probeDatagram6.check6(b); err != nil {
		return Probe{}, err
	}
	payload := b[datagramHeaders6:]
	p := Probe{
		Kind:   ProbeKind(payload[5]),
		Path:   binary.BigEndian.Uint16(payload[6:]),
		Token:  binary.BigEndian.Uint64(payload[8:]),
		Origin: netip.AddrFrom16([16]byte(b[8:])),
		Target: netip.AddrFrom16([16]byte(b[24:])),

		Carrier: Carrier(payload[offCarrier6]),
		Padding: len(b) - ProbeLen6,
		AsData:  class6(b)&^ecnMask == byte(ECT0)&^ecnMask,
	}
	if p.Kind == ProbeReply {
		p.Origin, p.Target = p.Target, p.Origin
	}
	if via := netip.AddrFrom16([16]byte(payload[offVia6:])); !via.IsUnspecified() {
		p.Via = via
	}
	switch {
	case payload[4] != probeVersion:
		return Probe{}, ErrProbeVersion
	case p.Kind < Boomerang || p.Kind > ProbeReply:
		return Probe{}, ErrProbeKind
	case p.Origin.Is4In6() || p.Target.Is4In6() || p.Via.Is4In6() || (p.Kind == Boomerang) != (p.Origin == p.Target):
		return Probe{}, ErrProbeAddress
	}
	return p, nil
}

// probeTooBig6 is ProbeTooBig for ICMPv6's "packet too big" (RFC 4443 §3.2), which quotes as
// much as fits into 1280 bytes.
func probeTooBig6(b []byte) (token uint64, mtu int, err error) {
	if len(b) < ip6Overhead+icmpHeader || b[6] != protoICMPv6 {
		return 0, 0, ErrNotProbe
	}
	n, err := length6(b)
	if err != nil {
		return 0, 0, err
	}
	header, icmp := b[:ip6Overhead], b[ip6Overhead:n]
	if len(icmp) < icmpHeader {
		return 0, 0, ErrTruncated
	}
	if icmp[0] != icmp6TooBig {
		return 0, 0, ErrNotProbe
	}
	mtu = int(min(binary.BigEndian.Uint32(icmp[4:]), 0xffff))
	quote := icmp[icmpHeader:]
	if len(quote) >= 2*ip6Overhead && quote[0]>>4 == 6 && quote[6] == protoIPv6 {
		quote, mtu = quote[ip6Overhead:], mtu-ip6Overhead
	}
	if len(quote) < offToken6+8 || quote[0]>>4 != 6 || quote[6] != protoUDP ||
		binary.BigEndian.Uint32(quote[ip6Overhead:]) != probeDatagram6.ports() ||
		binary.BigEndian.Uint32(quote[datagramHeaders6:]) != probeDatagram6.magic {
		return 0, 0, ErrNotProbe
	}
	if ^fold(sumICMP6(header, icmp)) != 0 {
		return 0, 0, ErrChecksum
	}
	return binary.BigEndian.Uint64(quote[offToken6:]), max(mtu, 0), nil
}
