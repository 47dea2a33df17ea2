package gro

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"weft/flowcell"
)

// packet is a packet by its fields.
type packet struct {
	version   int // 4 or 6
	proto     uint8
	tos, ttl  uint8
	id        uint16 // and the flow label's lower half
	label     uint8  // the flow label's upper four bits
	fragment  uint16 // flags and offset, of IPv4
	ipOptions []byte // options, or an extension header
	src, dst  byte   // the addresses' last
	ports     [2]uint16
	seq, ack  uint32
	reserved  uint8 // the bits beside the data offset
	flags     uint8
	window    uint16
	urgent    uint16
	options   []byte
	payload   []byte
	gsoSize   int
}

// String leaves the payload's bytes out.
func (p packet) String() string {
	n := len(p.payload)
	p.payload = nil
	type plain packet
	return fmt.Sprintf("%d bytes, %+v\n", n, plain(p))
}

var timestamps = []byte{1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4}

// data is a segment of n bytes.
func data(version, n int) packet {
	p := packet{
		version: version, proto: flowcell.ProtoTCP, ttl: 61, id: 7, fragment: 0x4000,
		src: 2, dst: 3, ports: [2]uint16{40000, 80},
		seq: 1<<32 - 150, ack: 99, flags: flowcell.FlagACK, window: 500, options: timestamps,
		payload: make([]byte, n),
	}
	if version == 6 {
		p.fragment = 0
	}
	for i := range p.payload {
		p.payload[i] = byte(i*i + 3)
	}
	return p
}

// after is a segment of n bytes that follows p, with other bytes.
func (p packet) after(n int) packet {
	next := p
	next.seq += uint32(len(p.payload))
	next.id++
	next.payload = make([]byte, n)
	for i := range next.payload {
		next.payload[i] = byte(i) ^ byte(next.seq)
	}
	return next
}

// networkHeader is the bytes before the TCP header.
func (p packet) networkHeader() int {
	return map[int]int{4: ipv4Header, 6: ipv6Header}[p.version] + len(p.ipOptions)
}

// bytes is the packet on the wire, checksums right.
func (p packet) bytes() []byte {
	ip := make([]byte, p.networkHeader())
	length := len(ip) + tcpHeader + len(p.options) + len(p.payload)
	if p.version == 4 {
		ip[0] = 0x40 | byte(len(ip)/4)
		ip[1] = p.tos
		binary.BigEndian.PutUint16(ip[2:], uint16(length))
		binary.BigEndian.PutUint16(ip[4:], p.id)
		binary.BigEndian.PutUint16(ip[6:], p.fragment)
		ip[8], ip[9] = p.ttl, p.proto
		copy(ip[12:], []byte{10, 0, 0, p.src, 10, 3, 1, p.dst})
		copy(ip[20:], p.ipOptions)
	} else {
		binary.BigEndian.PutUint32(ip, 6<<28|uint32(p.tos)<<20|uint32(p.label)<<16|uint32(p.id))
		binary.BigEndian.PutUint16(ip[4:], uint16(length-ipv6Header))
		ip[6], ip[7] = p.proto, p.ttl
		if len(p.ipOptions) > 0 {
			const destinationOptions = 60
			ip[6] = destinationOptions
			copy(ip[40:], p.ipOptions)
			ip[40] = p.proto
		}
		ip[8], ip[23], ip[24], ip[39] = 0xfd, p.src, 0xfd, p.dst
	}
	tcp := make([]byte, tcpHeader, tcpHeader+len(p.options)+len(p.payload))
	binary.BigEndian.PutUint16(tcp, p.ports[0])
	binary.BigEndian.PutUint16(tcp[2:], p.ports[1])
	binary.BigEndian.PutUint32(tcp[4:], p.seq)
	binary.BigEndian.PutUint32(tcp[8:], p.ack)
	tcp[12] = byte((tcpHeader+len(p.options))/4)<<4 | p.reserved
	tcp[13] = p.flags
	binary.BigEndian.PutUint16(tcp[14:], p.window)
	binary.BigEndian.PutUint16(tcp[18:], p.urgent)
	b := slices.Concat(ip, tcp, p.options, p.payload)
	setChecksums(b, len(ip))
	return b
}

// sum is the one's complement sum, slowly.
func sum(parts ...[]byte) uint16 {
	var s uint64
	for i, b := range slices.Concat(parts...) {
		s += uint64(b) << (8 * (1 - i%2))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// pseudoHeader is what the TCP checksum covers besides the segment.
func pseudoHeader(b []byte, ip int) []byte {
	addresses := b[12:20]
	if b[0]>>4 == 6 {
		addresses = b[8:40]
	}
	p := binary.BigEndian.AppendUint32(bytes.Clone(addresses), uint32(len(b)-ip))
	return append(p, 0, flowcell.ProtoTCP)
}

func setChecksums(b []byte, ip int) {
	if b[0]>>4 == 4 {
		b[10], b[11] = 0, 0
		binary.BigEndian.PutUint16(b[10:], ^sum(b[:ip]))
	}
	tcp := b[ip:]
	tcp[16], tcp[17] = 0, 0
	binary.BigEndian.PutUint16(tcp[16:], ^sum(pseudoHeader(b, ip), tcp))
}

// segments cuts a super-segment, as a device with segmentation offload does.
// ids are the IPv4 IDs, or labels' lower halves, of what comes out.
func segments(b []byte, mss int, ids []uint16) [][]byte {
	ip := ipv4Header
	if b[0]>>4 == 6 {
		ip = ipv6Header
	}
	size := ip + int(b[ip+12]>>4)*4
	head, payload := b[:size], b[size:]
	var out [][]byte
	for i := 0; len(payload) > 0; i++ {
		n := min(mss, len(payload))
		s := slices.Concat(head, payload[:n])
		payload = payload[n:]
		if b[0]>>4 == 4 {
			binary.BigEndian.PutUint16(s[2:], uint16(len(s)))
			binary.BigEndian.PutUint16(s[4:], ids[i])
		} else {
			binary.BigEndian.PutUint16(s[4:], uint16(len(s)-ip))
			binary.BigEndian.PutUint16(s[2:], ids[i])
		}
		seq := binary.BigEndian.Uint32(s[ip+4:]) + uint32(i*mss)
		binary.BigEndian.PutUint32(s[ip+4:], seq)
		if len(payload) > 0 {
			s[ip+13] &^= flowcell.FlagPSH | flowcell.FlagFIN
		}
		setChecksums(s, ip)
		out = append(out, s)
	}
	return out
}
