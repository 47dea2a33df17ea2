package encap

import (
	"encoding/binary"
	"testing"
)

// udp6 is an IPv6 packet of UDP with a checksum.
func udp6(checksum uint16) []byte {
	b := inner6(8)
	b[6] = protoUDP
	binary.BigEndian.PutUint16(b[44:], 8)
	binary.BigEndian.PutUint16(b[46:], checksum)
	return b
}

func TestCheckZeroChecksum_wantsTheInnerPacketGuarded(t *testing.T) {
	udp4 := func(edit func(b []byte)) []byte { // goldenInner with a checksum, changed
		b := unhex(goldenInner)
		binary.BigEndian.PutUint16(b[26:], 0x1234)
		edit(b)
		return b
	}
	tcp := func(b []byte) { b[9] = 6; fix(b) }
	for _, c := range []struct {
		name  string
		h     UDPHeader
		inner []byte
		want  error
	}{
		{"UDP with a checksum", plainHeader, udp4(func([]byte) {}), nil},
		{"UDP without", plainHeader, unhex(goldenInner), ErrUDPUnguarded},
		{"a later fragment of UDP", plainHeader, udp4(func(b []byte) { b[7], b[26], b[27] = 1, 0, 0; fix(b) }), nil},
		{"other protocols' bytes", plainHeader, udp4(func(b []byte) { tcp(b); b[26], b[27] = 0, 0 }), nil},
		{"a wrong IPv4 header", plainHeader, udp4(func(b []byte) { b[12] ^= 1 }), ErrChecksum},
		{"a partial checksum", UDPHeader{Partial: true}, udp4(tcp), ErrUDPPartial},
		{"UDP over IPv6", plainHeader, udp6(1), nil},
		{"UDP over IPv6 without", plainHeader, udp6(0), ErrUDPUnguarded},
		{"no next header", plainHeader, inner6(8), nil},
		{"truncated UDP over IPv6", plainHeader, func() []byte { b := inner6(7); b[6] = protoUDP; return b }(), nil},
	} {
		if _, inner, err := ParseUDP(plain(c.h, c.inner)); err != nil || len(inner) != len(c.inner) {
			t.Fatalf("%s: the test's packet is refused: %v", c.name, err)
		}
		if err := CheckZeroChecksum(c.h, c.inner); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
