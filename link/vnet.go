package link

import (
	"encoding/binary"
	"errors"
)

// VnetHeaderLen is the length of an encoded VnetHeader in bytes.
const VnetHeaderLen = 10

// SuperHeadroom is the least offset of ReadSuper and WriteSuper, in bytes: a
// VnetHeader and an Ethernet header go before the packet, and 8 bytes more.
const SuperHeadroom = 32

// MaxSuperLen is the longest super-segment in bytes, IP headers included: what
// the length fields of IPv4 and IPv6 can say.
const MaxSuperLen = 65535

// Bits of VnetHeader.Flags.
const (
	// VnetNeedsCsum: the checksum field holds the sum over the pseudo-header, and the
	// sender of the packet completes it. On a received packet it also means that nothing
	// need be verified.
	VnetNeedsCsum = 1
	// VnetDataValid: the checksum has been verified.
	VnetDataValid = 2
)

// Values of VnetHeader.GSOType.
const (
	VnetGSONone  = 0
	VnetGSOTCPv4 = 1
	VnetGSOTCPv6 = 4
	// VnetGSOUDP is datagrams of equal size (virtio: UDP_L4), IPv4 or IPv6. It is not the
	// obsolete type 3, one datagram cut into fragments.
	VnetGSOUDP = 5
	// VnetGSOECN is added to a TCP type if the first segment carries CWR and
	// the others must not.
	VnetGSOECN = 0x80
)

// VnetHeader is a virtio_net_hdr without num_buffers (virtio 1.2 §5.1.6.1, as in
// linux/virtio_net.h). It says what the program or the kernel still has to do for a
// packet. Offsets in it count from the start of the IP packet. The zero value is for a
// packet that is complete.
type VnetHeader struct {
	Flags   uint8
	GSOType uint8
	// HdrLen is the length of the headers that each segment repeats, in bytes.
	// From the kernel it is a hint that may be longer.
	HdrLen uint16
	// GSOSize is the payload of a segment in bytes; the last may have less.
	GSOSize uint16
	// CsumStart is where the sum to be completed starts. CsumOffset is where its field
	// is, counted from CsumStart. Both in bytes.
	CsumStart  uint16
	CsumOffset uint16
}

// Put encodes h.
func (h VnetHeader) Put(b *[VnetHeaderLen]byte) {
	b[0], b[1] = h.Flags, h.GSOType
	binary.LittleEndian.PutUint16(b[2:], h.HdrLen)
	binary.LittleEndian.PutUint16(b[4:], h.GSOSize)
	binary.LittleEndian.PutUint16(b[6:], h.CsumStart)
	binary.LittleEndian.PutUint16(b[8:], h.CsumOffset)
}

// ParseVnetHeader decodes a header. Its values may be wrong: see Check.
func ParseVnetHeader(b *[VnetHeaderLen]byte) VnetHeader {
	return VnetHeader{
		Flags:      b[0],
		GSOType:    b[1],
		HdrLen:     binary.LittleEndian.Uint16(b[2:]),
		GSOSize:    binary.LittleEndian.Uint16(b[4:]),
		CsumStart:  binary.LittleEndian.Uint16(b[6:]),
		CsumOffset: binary.LittleEndian.Uint16(b[8:]),
	}
}

// GSO reports whether the packet is a super-segment.
func (h VnetHeader) GSO() bool { return h.GSOType != VnetGSONone }

var (
	errCsumRange = errors.New("vnet header: CsumStart and CsumOffset lie outside the packet")
	errGSOType   = errors.New("vnet header: GSOType is none of TCPv4, TCPv6, UDP")
	errGSOSize   = errors.New("vnet header: GSOSize of a super-segment is 0")
	errHdrLen    = errors.New("vnet header: HdrLen is beyond the packet")
)

// Check returns an error unless h fits a packet of size bytes: everything that it points
// at must lie within the packet.
func (h VnetHeader) Check(size int) error {
	if h.Flags&VnetNeedsCsum != 0 && int(h.CsumStart)+int(h.CsumOffset)+2 > size {
		return errCsumRange
	}
	if !h.GSO() {
		return nil
	}
	switch h.GSOType &^ VnetGSOECN {
	case VnetGSOTCPv4, VnetGSOTCPv6, VnetGSOUDP:
	default:
		return errGSOType
	}
	if h.GSOSize == 0 {
		return errGSOSize
	}
	if int(h.HdrLen) > size {
		return errHdrLen
	}
	return nil
}

// ethernetLen is the length of an Ethernet header in bytes.
const ethernetLen = 14

// shift returns h for a packet before which n bytes were put; negative n: from
// which -n bytes were taken. An offset that leaves its range becomes 65535,
// which Check refuses for every packet.
func (h VnetHeader) shift(n int) VnetHeader {
	move := func(v uint16) uint16 {
		if s := int(v) + n; s >= 0 && s < 0xffff {
			return uint16(s)
		}
		return 0xffff
	}
	if h.Flags&VnetNeedsCsum != 0 {
		h.CsumStart = move(h.CsumStart)
	}
	// 0 is "not known".
	if h.HdrLen != 0 {
		h.HdrLen = move(h.HdrLen)
	}
	return h
}
