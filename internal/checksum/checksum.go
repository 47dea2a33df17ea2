// Package checksum adds up the Internet checksum (RFC 1071). It is pure.
package checksum

import (
	"encoding/binary"
	"math/bits"
)

// Sum adds b, taken as 16-bit words in network byte order, to a sum of earlier
// bytes, of which there were an even number. The result is a partial sum for
// Fold or another Sum.
func Sum(b []byte, initial uint64) uint64 {
	sum, carry := initial, uint64(0)
	for len(b) >= 32 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), carry)
		b = b[32:]
	}
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var tail [8]byte
	copy(tail[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(tail[:]), carry)
	// Adding the carry can overflow only where sum is all ones, and then it is
	// zero in one's complement.
	sum, carry = bits.Add64(sum, carry, 0)
	return sum + carry
}

// Fold makes 16 bits of a partial sum; their complement is the checksum.
func Fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}
