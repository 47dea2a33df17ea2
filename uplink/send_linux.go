package uplink

import (
	"errors"
	"net/netip"

	"weft/link"
)

// sender sends by the packet socket, to the switch. What is for the kernel's own addresses
// goes by the TUN: coming back from the switch it might look forged to the kernel (rp_filter).
type sender struct {
	*link.Packet
	tun *link.TUN
	own map[netip.Addr]bool
}

// WriteParts writes one packet in parts.
func (s *sender) WriteParts(parts [][]byte) error {
	if len(parts) > 0 && len(parts[0]) > link.VnetHeaderLen && s.own[destination(parts[0][link.VnetHeaderLen:])] {
		return s.tun.WriteParts(parts)
	}
	return s.Packet.WriteParts(parts)
}

// Write writes packets.
func (s *sender) Write(bufs [][]byte, offset int) (int, error) {
	return s.split(bufs, offset, s.Packet.Write, s.tun.Write)
}

// WriteSuper writes super-segments.
func (s *sender) WriteSuper(bufs [][]byte, offset int) (int, error) {
	return s.split(bufs, offset, s.Packet.WriteSuper, s.tun.WriteSuper)
}

type write func(bufs [][]byte, offset int) (int, error)

// split writes runs of packets with the same way. Nearly always that is one run.
func (s *sender) split(bufs [][]byte, offset int, out, in write) (n int, err error) {
	for len(bufs) > 0 {
		here, run := s.ours(bufs[0], offset), 1
		for run < len(bufs) && s.ours(bufs[run], offset) == here {
			run++
		}
		by := out
		if here {
			by = in
		}
		taken, failed := by(bufs[:run], offset)
		n, err, bufs = n+taken, errors.Join(err, failed), bufs[run:]
	}
	return n, err
}

func (s *sender) ours(b []byte, offset int) bool {
	return len(b) > offset && s.own[destination(b[offset:])]
}

// MaxSuper is what both take: which one it will be is not known beforehand.
func (s *sender) MaxSuper() int { return min(s.Packet.MaxSuper(), s.tun.MaxSuper()) }

// Offloads returns the socket's.
func (s *sender) Offloads() link.Offloads {
	o := s.Packet.Offloads()
	o.Opener = "packet in and out"
	return o
}

// Drops counts packets of both.
func (s *sender) Drops() uint64 { return s.Packet.Drops() + s.tun.Drops() }

// Close closes both.
func (s *sender) Close() error { return errors.Join(s.Packet.Close(), s.tun.Close()) }

// destination returns an IP packet's, the zero Addr of what is none.
func destination(b []byte) netip.Addr {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(b[16:20]))
	case len(b) >= 40 && b[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(b[24:40]))
	}
	return netip.Addr{}
}
