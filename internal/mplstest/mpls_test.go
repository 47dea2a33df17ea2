package mplstest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"weft/encap"
)

// goldenInner is an IPv4 packet.
const goldenInner = "452a001c123440003f11146c0a0000020a030103" + "1388177000080000"

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// Ports 2, 3, 1, 0 with TOS 0x2a and TTL 64: labels 18, 19, 17, 16, class 1, the
// last with the bottom-of-stack bit (RFC 3032 §2.1).
const goldenMPLS = "00012240" + "00013240" + "00011240" + "00010340"

func TestAppendMPLS_golden(t *testing.T) {
	b, err := Append([]byte{0xee}, []int{2, 3, 1, 0}, 0x2a, 64)
	if want := unhex("ee" + goldenMPLS); err != nil || !bytes.Equal(b, want) {
		t.Errorf("\ngot  %x, %v\nwant %x", b, err, want)
	}
	b, err = Append(nil, []int{maxPort}, 0xff, 255)
	if want := unhex("ffffffff"); err != nil || !bytes.Equal(b, want) {
		t.Errorf("\ngot  %x, %v\nwant %x", b, err, want)
	}
	for names, ports := range map[string][]int{
		"no ports":                           {},
		"port -1, number 1":                  {0, -1},
		"port 1048560, number 0 on the path": {maxPort + 1},
	} {
		if b, err := Append([]byte{7}, ports, 0, 64); err == nil || !strings.Contains(err.Error(), names) || len(b) != 1 {
			t.Errorf("%v: %x, %v; want an error with %q", ports, b, err, names)
		}
	}
}

// A packet on its way: every switch pops its label, and the TTL runs down.
func TestPopMPLS_hopByHop(t *testing.T) {
	inner := unhex(goldenInner)
	b := append(unhex(goldenMPLS), inner...)
	for i, port := range []uint32{2, 3, 1, 0} {
		entry := binary.BigEndian.Uint32(b)
		if ttl, class := entry&0xff, entry>>9&7; ttl != uint32(64-i) || class != 1 {
			t.Fatalf("hop %d: TTL %d, class %d", i, ttl, class)
		}
		label, rest, bottom, err := Pop(b)
		if err != nil || label != 16+port || bottom != (i == 3) || len(rest) != len(b)-4 || &rest[0] != &b[4] {
			t.Fatalf("hop %d: label %d, %x, %v, %v", i, label, rest, bottom, err)
		}
		b = rest
	}
	if !bytes.Equal(b, inner) {
		t.Errorf("%x arrives, want %x", b, inner)
	}
}

func TestPopMPLS_errors(t *testing.T) {
	for _, c := range []struct {
		name, b string
		want    error
	}{
		{"nothing", "", encap.ErrTruncated},
		{"half an entry", "000122", encap.ErrTruncated},
		{"ends before the bottom", "00012240", encap.ErrTruncated},
		{"ends within the second", "00012240000132", encap.ErrTruncated},
		{"nothing behind the bottom", "00012340", nil},
		{"explicit null", "00000340" + goldenInner, ErrLabel},
		{"last reserved label", "0000ff40" + goldenInner, ErrLabel},
		{"TTL 1", "00012301" + goldenInner, ErrTTL},
		{"TTL 0", "00012300" + goldenInner, ErrTTL},
		{"TTL 2", "00012302" + goldenInner, nil},
	} {
		b := unhex(c.b)
		if _, rest, _, err := Pop(b); err != c.want || err != nil && rest != nil {
			t.Errorf("%s: %x, %v; want %v", c.name, rest, err, c.want)
		}
		if c.want != nil && !bytes.Equal(b, unhex(c.b)) {
			t.Errorf("%s: changed the bytes", c.name)
		}
	}
}

func FuzzPopMPLS(f *testing.F) {
	f.Add(append(unhex(goldenMPLS), unhex(goldenInner)...))
	f.Add(unhex(goldenMPLS)[:14])
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		label, rest, bottom, err := Pop(b)
		if err != nil {
			if rest != nil || !bytes.Equal(b, before) {
				t.Fatalf("%v, but %x became %x", err, before, b)
			}
			return
		}
		entry := binary.BigEndian.Uint32(before)
		again := entry&0xeff | label<<12 // class and TTL
		if bottom {
			again |= 1 << 8
		}
		if again != entry || len(rest) != len(b)-4 {
			t.Fatalf("%x: label %d, bottom %v, %d bytes left", before, label, bottom, len(rest))
		}
		if !bottom {
			before[7] = byte(entry) - 1
		}
		if !bytes.Equal(b, before) {
			t.Fatalf("%x became %x", before, b)
		}
	})
}
