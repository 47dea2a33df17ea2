package link

import (
	"encoding/binary"

	"weft/internal/checksum"
)

// complete does in software what VnetNeedsCsum asks for, in place. h must have
// passed Check for the packet.
func (h VnetHeader) complete(packet []byte) {
	if h.Flags&VnetNeedsCsum == 0 {
		return
	}
	field := packet[int(h.CsumStart)+int(h.CsumOffset):]
	sum := ^checksum.Fold(checksum.Sum(packet[h.CsumStart:], 0))
	if sum == 0 {
		// As the kernel's skb_checksum_help: to UDP 0 means "no checksum", and
		// for the others both zeros are the same.
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(field, sum)
}
