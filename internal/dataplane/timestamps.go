package dataplane

import "encoding/binary"

// TCP options (RFC 9293 §3.1, RFC 7323 §3.2).
const (
	optionEnd        = 0
	optionNothing    = 1
	optionTimestamps = 8

	timestampsLength = 10
)

// StripTimestamps takes the timestamps option out of a SYN. b is the headers of a packet of TCP
// that flowcell.Packet.Parse has accepted. No-operations replace the option, and
// TCP's checksum is updated (RFC 1624).
func StripTimestamps(b []byte) {
	tcp := b[transportAt(b):]
	end := int(tcp[12]>>4) * 4
	for i := 20; i+1 < end && tcp[i] != optionEnd; {
		if tcp[i] == optionNothing {
			i++
			continue
		}
		n := int(tcp[i+1])
		if n < 2 || i+n > end {
			return // nonsense: TCP's to refuse
		}
		if tcp[i] == optionTimestamps && n == timestampsLength {
			sum := uint32(^binary.BigEndian.Uint16(tcp[16:]))
			for at := i; at < i+n; at++ {
				shift := 8 * (1 - at%2) // the first byte of a word is the high one
				sum += uint32(^(uint16(tcp[at]) << shift)) + optionNothing<<shift
				tcp[at] = optionNothing
			}
			sum = sum>>16 + sum&0xffff
			sum += sum >> 16
			binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum))
		}
		i += n
	}
}
