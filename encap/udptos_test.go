package encap

import (
	"bytes"
	"testing"
)

// Every TOS byte inside, every one outside, both versions: the ECN field becomes
// what decapsulateECN says, the rest of the packet remains.
func TestUDPDecapsulateTOS_followsRFC6040(t *testing.T) {
	for tos := range 256 {
		v4 := unhex(goldenInner)
		v4[1] = byte(tos)
		fix(v4)
		v6 := inner6(4)
		v6[0] |= byte(tos) >> 4
		v6[1] = byte(tos)<<4 | 0xd // and a flow label
		for _, inner := range [][]byte{v4, v6} {
			if got := UDPTOS(inner); got != byte(tos) {
				t.Fatalf("IPv%d: TOS %#x, want %#x", inner[0]>>4, got, tos)
			}
			for outer := range 256 {
				b := bytes.Clone(inner)
				err := UDPDecapsulateTOS(b, byte(outer))
				ecn, ok := decapsulateECN(ECN(tos&3), ECN(outer&3))
				want := bytes.Clone(inner)
				if !ok {
					if err != ErrECN || !bytes.Equal(b, want) {
						t.Fatalf("IPv%d, TOS %#x in %#x: %x, %v", inner[0]>>4, tos, outer, b, err)
					}
					continue
				}
				if inner[0]>>4 == 4 {
					want[1] = byte(tos)&^3 | byte(ecn)
					fix(want)
				} else {
					want[1] = want[1]&^0x30 | byte(ecn)<<4
				}
				if err != nil || !bytes.Equal(b, want) {
					t.Fatalf("IPv%d, TOS %#x in %#x:\ngot  %x, %v\nwant %x", inner[0]>>4, tos, outer, b, err, want)
				}
			}
		}
	}
}
