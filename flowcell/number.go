package flowcell

import "encoding/binary"

// Number says to which flowcell of its flow a packet belongs, and its place there. On the
// wire it is the IPv4 ID of an atomic datagram, which is free for the sender's use (RFC
// 6864 §4.1), or the lower 16 bits of the IPv6 flow label (doc.go says why). The high 10
// bits are the flowcell's number, which wraps. The low 6 bits are the index of the segment
// inside it. A kernel that cuts a super-segment adds 1 to the ID for every segment, so the
// numbers come out right; 64 KB are 46 segments of 1448 bytes. In IPv6 all segments of a
// flowcell have the number of the first: see First.
//
// The last index is never used: a flowcell has at most 63 segments. A sender that does
// not number flowcells but counts its packets in the ID uses that index again and again,
// so receivers can tell the two apart.
//
// A Number is a hint. A receiver must not rely on it.
type Number uint16

const (
	// Cells is how many flowcells can be told apart. Their numbers are modulo Cells.
	Cells = 1 << 10
	// MaxIndex is the highest index of a segment in a flowcell.
	MaxIndex = 1<<indexBits - 2

	indexBits = 6
)

// MakeNumber returns the Number of a segment in a flowcell. cell is taken modulo Cells.
// index is at most MaxIndex.
func MakeNumber(cell uint16, index uint8) Number {
	return Number(cell<<indexBits | uint16(index))
}

// Cell is the flowcell's number, below Cells.
func (n Number) Cell() uint16 { return uint16(n >> indexBits) }

// Index is the segment's place in its flowcell. If it is above MaxIndex, the sender does
// not number its flowcells.
func (n Number) Index() uint8 { return uint8(n & (1<<indexBits - 1)) }

// Count returns the number after n for a sender that counts packets and does not
// number flowcells, so that later packets have later numbers. It leaves out index
// 0, with which flowcells begin, so that receivers do not take it for numbering.
func (n Number) Count() Number {
	if n++; n.Index() == 0 {
		n++
	}
	return n
}

// First is the Number of the first segment of n's flowcell.
func (n Number) First() Number { return n &^ (1<<indexBits - 1) }

// Stamp writes the Number into the header of an unfragmented packet that Parse has
// accepted. In IPv4 it sets DF, since the ID is free only then, and updates the checksum
// (RFC 1624 §3). In IPv6 it writes the lower 16 bits of the flow label, which no checksum
// covers, and leaves the upper 4 as the sender's TCP has chosen them.
//
// In IPv6 the packets with one label are a flow to switches (RFC 6437 §2), which must take
// one way. So a caller there stamps First of a flowcell's numbers.
func (n Number) Stamp(packet []byte) {
	if packet[0]>>4 == 6 {
		binary.BigEndian.PutUint16(packet[2:], uint16(n))
		return
	}
	const df = 0x4000
	h := packet[:20]
	id, flags := binary.BigEndian.Uint16(h[4:]), binary.BigEndian.Uint16(h[6:])
	sum := uint32(^binary.BigEndian.Uint16(h[10:])) +
		uint32(^id) + uint32(n) + uint32(^flags) + uint32(flags|df)
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	binary.BigEndian.PutUint16(h[4:], uint16(n))
	binary.BigEndian.PutUint16(h[6:], flags|df)
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
}
