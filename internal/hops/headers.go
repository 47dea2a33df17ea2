package hops

import (
	"encoding/binary"
	"net/netip"
)

// sumOf is the UDP checksum of a probe.
func sumOf(inner []byte) uint16 {
	at := ip6Header
	if inner[0]>>4 == 4 {
		at = 20
	}
	return binary.BigEndian.Uint16(inner[at+6:])
}

// destination is a packet's.
func destination(b []byte) netip.Addr {
	if b[0]>>4 == 4 {
		return netip.AddrFrom4([4]byte(b[16:]))
	}
	return netip.AddrFrom16([16]byte(b[24:]))
}

// source is a packet's.
func source(b []byte) netip.Addr {
	if b[0]>>4 == 4 {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16([16]byte(b[8:]))
}

// setTTL changes the TTL of an IPv4 header without options, or a hop limit.
func setTTL(b []byte, ttl uint8) {
	if b[0]>>4 == 6 {
		b[7] = ttl
		return
	}
	b[8] = ttl
	b[10], b[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum>>16+sum&0xffff))
}
