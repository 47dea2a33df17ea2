package encap

import (
	"encoding/binary"
	"net/netip"
)

const (
	viaLen = 4 // of Probe.Via over IPv4, in bytes
	idVia  = 1 // in the first byte of the IPv4 ID: there is one
)

// put4 is put for IPv4.
func (p *Probe) put4(b []byte) {
	from, to := p.Origin.As4(), p.Target.As4()
	binary.BigEndian.PutUint16(b[4:], uint16(p.Carrier))
	payload := b[datagramHeaders:]
	payload[4] = probeVersion
	payload[5] = byte(p.Kind)
	binary.BigEndian.PutUint16(payload[6:], p.Path)
	binary.BigEndian.PutUint64(payload[8:], p.Token)
	copy(payload[16:], from[:])
	copy(payload[20:], to[:])
	if p.Via.IsValid() {
		via := p.Via.As4()
		copy(payload[24:], via[:])
		b[4] = idVia
	}
	if p.Kind == ProbeReply {
		from, to = to, from
	}
	if p.AsData {
		asDataDatagram.finish(b, from, to)
	} else {
		probeDatagram.finish(b, from, to)
	}
}

// parseProbe4 is ParseProbe for a packet that claims to be a probe over IPv4.
func parseProbe4(packet []byte) (Probe, error) {
	b := packet[:binary.BigEndian.Uint16(packet[2:])]
	if err := probeDatagram.check(b); err != nil {
		return Probe{}, err
	}
	payload := b[datagramHeaders:]
	p := Probe{
		Kind:   ProbeKind(payload[5]),
		Path:   binary.BigEndian.Uint16(payload[6:]),
		Token:  binary.BigEndian.Uint64(payload[8:]),
		Origin: netip.AddrFrom4([4]byte(payload[16:])),
		Target: netip.AddrFrom4([4]byte(payload[20:])),

		Carrier: Carrier(b[5]),
		Padding: len(b) - ProbeLen,
		AsData:  b[1]&^ecnMask == byte(ECT0)&^ecnMask,
	}
	from, to := netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	if p.Kind == ProbeReply {
		from, to = to, from
	}
	if b[4] == idVia && p.Padding >= viaLen {
		p.Via = netip.AddrFrom4([4]byte(payload[24:]))
	}
	switch {
	case payload[4] != probeVersion:
		return Probe{}, ErrProbeVersion
	case p.Kind < Boomerang || p.Kind > ProbeReply:
		return Probe{}, ErrProbeKind
	case from != p.Origin || to != p.Target || (p.Kind == Boomerang) != (from == to):
		return Probe{}, ErrProbeAddress
	}
	return p, nil
}
