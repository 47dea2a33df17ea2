package wire

import (
	"bytes"
	"testing"

	"weft/topoupdate"
)

// What a decoder accepts is canonical: encoding it again gives the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(appendFlow(nil, flowOf(1, false)))
	f.Add(appendFlow(nil, flowOf(1, true)))
	for _, p := range somePlaces {
		f.Add(appendPlacement(nil, p))
	}
	f.Add(appendLeader(nil, serverAt[0]))
	f.Add(appendLeader(appendHeader(nil, &header{kind: typeAnswer, fabric: 5, node: hostAddr, session: 1}), serverAt[0]))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, rest, err := nextFlow(b); err == nil {
			if again := append(appendFlow(nil, x), rest...); !bytes.Equal(again, b) {
				t.Errorf("flow %x became %x", b, again)
			}
		}
		if x, rest, err := nextPlacement(b); err == nil {
			if again := append(appendPlacement(nil, x), rest...); !bytes.Equal(again, b) {
				t.Errorf("placement %x became %x", b, again)
			}
		}
		if x, err := parseLeader(b); err == nil {
			if again := appendLeader(nil, x); !bytes.Equal(again, b) {
				t.Errorf("leader %x became %x", b, again)
			}
		}
		if h, err := parseHeader(b, 5); err == nil {
			again := appendHeader(nil, &h)
			again[atKey], again[atKey+1] = b[atKey], b[atKey+1] // the keyring's, and a spare byte
			if h.node.Is4() && !bytes.Equal(again[atNode:atNode+16], b[atNode:atNode+16]) || !bytes.Equal(again, b[:headerSize]) {
				t.Errorf("header %x became %x", b[:headerSize], again)
			}
		}
	})
}

// Whatever comes, neither side panics.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{0x57, 0x48, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newTalk(t, topoupdate.Keys{}, topoupdate.Keys{})
		c.desks[0].Lead(true, serverAt[0], 1)
		c.poll()
		c.hear(said{b, serverAt[0], hostAt})
		c.hear(said{b, hostAt, serverAt[0]})
		c.deliver()
	})
}
