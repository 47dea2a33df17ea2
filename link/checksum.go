package link

import (
	"encoding/binary"
	"math/bits"
)

// complete does in software what VnetNeedsCsum asks for, in place. h must have
// passed Check for the packet.
func (h VnetHeader) complete(packet []byte) {
	if h.Flags&VnetNeedsCsum == 0 {
		return
	}
	field := packet[int(h.CsumStart)+int(h.CsumOffset):]
	sum := ^onesSum(packet[h.CsumStart:])
	if sum == 0 {
		// As the kernel's skb_checksum_help: to UDP 0 means "no checksum", and
		// for the others both zeros are the same.
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(field, sum)
}

// onesSum returns the ones' complement sum of b (RFC 1071), not inverted.
func onesSum(b []byte) uint16 {
	var sum, carry uint64
	for ; len(b) >= 8; b = b[8:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
	}
	var tail [8]byte
	copy(tail[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(tail[:]), carry)
	sum, carry = bits.Add64(sum, 0, carry)
	sum += carry
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}
