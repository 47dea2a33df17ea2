package encap

import (
	"bytes"
	"encoding/binary"
)

// udpValid is the obvious check of a packet's UDP checksum.
func udpValid(b []byte) bool {
	pseudo := bytes.Clone(b[12:20])
	pseudo = append(pseudo, 0, 17, b[24], b[25])
	s := 0
	for i := 0; i < len(pseudo); i += 2 {
		s += int(binary.BigEndian.Uint16(pseudo[i:]))
	}
	for i := 20; i < len(b); i += 2 {
		s += int(binary.BigEndian.Uint16(b[i:]))
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return s == 0xffff
}

// mended makes both checksums of a packet right that was tampered with.
func mended(d *datagram, b []byte) []byte {
	fix(b)
	binary.BigEndian.PutUint16(b[26:], 0)
	binary.BigEndian.PutUint16(b[26:], ^fold(d.sum(b)))
	return b
}
