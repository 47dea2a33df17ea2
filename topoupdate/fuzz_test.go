package topoupdate

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

// What a decoder accepts is canonical: encoding it again gives the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(appendHello(nil, hello{time.Second, 3, true, false}))
	f.Add(appendEntry(nil, 26, version{5, 6}, time.Second, []uint64{0, 1 << 40}))
	f.Add(appendHeader(nil, &header{kind: typeUpdate, count: 1, sender: 3, session: 4}, 99))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseHello(b, 0); err == nil {
			if again := appendHello(nil, m); !bytes.Equal(again, b) {
				t.Errorf("hello %x became %x", b, again)
			}
		}
		if c, rest, err := nextEntry(b); err == nil {
			var words []uint64
			for w := range (len(c.bitmap) + 7) / 8 {
				words = append(words, word(c.bitmap, w))
			}
			again := appendEntry(nil, c.originator, c.version, c.age, words)
			if !bytes.Equal(append(again, rest...), b) {
				t.Errorf("entry %x became %x", b, again)
			}
		}
		if len(b) < headerSize {
			return
		}
		fingerprint := binary.BigEndian.Uint64(b[atFingerprint:])
		if h, err := parseHeader(b, fingerprint); err == nil {
			again := appendHeader(nil, &h, fingerprint)
			// The key ID is the keyring's; the rest are zeros that may become something.
			again[atKey], again[atKey+1], again[22], again[23] = b[atKey], b[atKey+1], b[22], b[23]
			if !bytes.Equal(again, b[:headerSize]) {
				t.Errorf("header %x became %x", b[:headerSize], again)
			}
		}
	})
}
