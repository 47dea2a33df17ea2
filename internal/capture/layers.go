package capture

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"weft/encap"
	"weft/flowcell"
)

// Layers are the headers of a packet that matter here.
type Layers struct {
	// Outer and Via are the outer addresses; the zero Addr if the packet has no outer header.
	Outer, Via netip.Addr
	Carrier    string  // ipip, srv6, mpls, udp or ""
	Labels     []int   // output ports still to be taken, of SRv6 or MPLS; nil if there are none
	Tunnel     *Tunnel // weft's header behind UDP
	Hidden     bool    // what is inside is encrypted
	Inner      []byte  // the innermost packet, as far as the bytes go
	Packet     flowcell.Packet
	IP         bool // Packet is set
	DF         bool // of the innermost packet; true for IPv6
	TOS        byte // of the innermost packet
	UDPPayload []byte
}

// Tunnel is weft's header behind UDP, without the part for a MAC.
type Tunnel struct {
	Path     uint8
	Flowcell flowcell.Number
	Number   uint32
	Sealed   bool
}

// Errors of Decode.
var (
	errShort = errors.New("capture: packet shorter than its headers say")
	errNotIP = errors.New("capture: not an IP packet")
)

const (
	etherHeader = 14
	etherIPv4   = 0x0800
	etherIPv6   = 0x86dd
	etherMPLS   = 0x8847
	etherVLAN   = 0x8100
	etherQinQ   = 0x88a8

	offFlags = 6
	flagDF   = 0x4000
	ip6Len   = 40
	udpLen   = 8
)

// Decoder decodes packets. Tunnels are the UDP ports of tunnels, whose datagrams it opens as
// far as they are not encrypted.
type Decoder struct {
	Tunnels []uint16
}

// Decode reads the headers of a packet, from the outermost to the innermost. size is the
// packet's length on the wire, at least len(b). It never panics and keeps b.
func (d *Decoder) Decode(link Link, b []byte, size int) (l Layers, err error) {
	size = max(size, len(b))
	if link == LinkEthernet {
		if b, size, err = l.ethernet(b, size); err != nil {
			return l, err
		}
	}
	return l, d.ip(&l, b, size)
}

// ethernet strips the link layer, tags and labels.
func (l *Layers) ethernet(b []byte, size int) ([]byte, int, error) {
	if len(b) < etherHeader {
		return nil, 0, errShort
	}
	kind, at := binary.BigEndian.Uint16(b[12:]), etherHeader
	for kind == etherVLAN || kind == etherQinQ {
		if len(b) < at+4 {
			return nil, 0, errShort
		}
		kind = binary.BigEndian.Uint16(b[at+2:])
		at += 4
	}
	if kind == etherMPLS {
		l.Carrier = encap.CarrierMPLS.String()
		for bottom := false; !bottom; at += 4 {
			if len(b) < at+4 {
				return nil, 0, errShort
			}
			entry := binary.BigEndian.Uint32(b[at:])
			l.Labels = append(l.Labels, int(entry>>12)-int(encap.MPLSLabel(0)))
			bottom = entry&(1<<8) != 0
		}
		return b[at:], size - at, nil
	}
	if kind != etherIPv4 && kind != etherIPv6 {
		return nil, 0, errNotIP
	}
	return b[at:], size - at, nil
}

// ip reads a packet that begins with an IP header.
func (d *Decoder) ip(l *Layers, b []byte, size int) error {
	for range 3 { // headers, one inside the other
		l.Inner = b
		if err := parse(&l.Packet, b, size); err != nil {
			return err
		}
		l.IP, l.DF, l.TOS = true, true, tos(b)
		if b[0]>>4 == 4 {
			l.DF = binary.BigEndian.Uint16(b[offFlags:])&flagDF != 0
		}
		p := &l.Packet
		if p.Fragment {
			return nil
		}
		switch p.Flow.Proto {
		case flowcell.ProtoIPIP, flowcell.ProtoIPv6:
			at := headerLen(b)
			if at < 0 || at > len(b) {
				return errShort
			}
			l.outer(p.Flow.Src.IP(), p.Flow.Dst.IP())
			b, size = b[at:], size-at
			continue
		case flowcell.ProtoUDP:
			at := headerLen(b)
			if at < 0 || at+udpLen > len(b) {
				return nil
			}
			l.UDPPayload = b[at+udpLen:]
			if inner, ok := d.tunnel(l, l.UDPPayload); ok {
				size -= len(b) - len(inner)
				b, l.UDPPayload = inner, nil
				continue
			}
		}
		return nil
	}
	return nil
}

// outer takes note of an outer header. The outermost counts.
func (l *Layers) outer(src, dst netip.Addr) {
	if l.Outer.IsValid() {
		return
	}
	l.Outer, l.Via = src, dst
	l.Carrier = encap.CarrierIPIP.String()
	if !dst.Is4() && encap.SIDBlock.Contains(dst) {
		l.Carrier = encap.CarrierSRv6.String()
		l.Labels, _ = encap.ParseSIDs(dst)
	}
}

// tunnel opens a datagram of a tunnel, if it is one and shows what is inside.
func (d *Decoder) tunnel(l *Layers, payload []byte) (inner []byte, ok bool) {
	port := l.Packet.Flow.DstPort
	known := false
	for _, t := range d.Tunnels {
		known = known || t == port
	}
	if !known || l.Tunnel != nil || len(payload) < encap.UDPOverhead || payload[0]>>4 != 1 {
		return nil, false
	}
	flags := payload[0] & 0xf
	l.outer(l.Packet.Flow.Src.IP(), l.Packet.Flow.Dst.IP())
	l.Carrier = "udp"
	l.Tunnel = &Tunnel{Path: payload[1], Flowcell: flowcell.Number(binary.BigEndian.Uint16(payload[2:])),
		Number: binary.BigEndian.Uint32(payload[4:]), Sealed: flags&1 != 0}
	at := encap.UDPOverhead
	switch {
	case flags&8 != 0:
		l.Hidden = true
		return nil, false
	case l.Tunnel.Sealed:
		at = encap.UDPSealedOverhead
	}
	if at >= len(payload) {
		return nil, false
	}
	return payload[at:], true
}

// parse is flowcell.Packet's, also for a super-segment that is too long for its header's
// length, which is then 0 (BIG TCP).
func parse(p *flowcell.Packet, b []byte, size int) error {
	if size > 0xffff && len(b) >= 20 && b[0]>>4 == 4 && binary.BigEndian.Uint16(b[2:]) == 0 {
		var head [60 + 60]byte
		n := copy(head[:], b)
		binary.BigEndian.PutUint16(head[2:], 0xffff)
		if err := p.ParseHeaders(head[:n], size); err != nil {
			return err
		}
		p.Payload += int32(size - 0xffff)
		p.Length = size
		return nil
	}
	return p.ParseHeaders(b, size)
}

// headerLen is the length of an IP header without extension headers; -1 if it has such.
func headerLen(b []byte) int {
	if b[0]>>4 == 4 {
		return int(b[0]&0xf) * 4
	}
	switch b[6] {
	case flowcell.ProtoIPIP, flowcell.ProtoIPv6, flowcell.ProtoUDP:
		return ip6Len
	}
	return -1
}

func tos(b []byte) byte {
	if b[0]>>4 == 4 {
		return b[1]
	}
	return byte(binary.BigEndian.Uint16(b) >> 4)
}
