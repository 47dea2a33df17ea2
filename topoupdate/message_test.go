package topoupdate

import (
	"bytes"
	"encoding/hex"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite testdata")

// message is a whole message, for tests.
type message struct {
	header
	hello   hello
	entries []testEntry
}

type testEntry struct {
	originator int
	version
	age  time.Duration
	down []uint64
}

func (m *message) encode(fingerprint uint64, ring *Keyring, now time.Duration) []byte {
	m.count = len(m.entries)
	b := appendHeader(nil, &m.header, fingerprint)
	if m.kind == typeHello {
		b = appendHello(b, m.hello)
	}
	for _, e := range m.entries {
		b = appendEntry(b, topologyNode(e.originator), e.version, e.age, e.down)
	}
	if ring != nil {
		b = ring.Sign(b, now)
	}
	return b
}

func mustRing(t testing.TB, k Keys) *Keyring {
	t.Helper()
	r, err := NewKeyring(k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var testKey = Key{ID: 7, Secret: []byte("sixteen bytes at least")}

// The bytes on the wire, as files: a change of them is a change of version.
func TestMessage_goldenBytes(t *testing.T) {
	ring := mustRing(t, Keys{List: []Key{testKey}})
	h := header{sender: 26, senderPort: 3, session: 0x0102030405060708, counter: 9, heard: 0x1112131415161718}
	he := h
	he.kind = typeHello
	up := h
	up.kind = typeUpdate
	for name, b := range map[string][]byte{
		"hello":        (&message{header: he, hello: hello{interval: 50 * time.Millisecond, multiplier: 3, down: true}}).encode(0xfedcba9876543210, nil, 0),
		"hello-leaves": (&message{header: he, hello: hello{interval: time.Second, multiplier: 255, leaving: true}}).encode(0xfedcba9876543210, nil, 0),
		"update": (&message{header: up, entries: []testEntry{
			{26, version{5, 6}, 7 * time.Millisecond, []uint64{0b1001}},
			{30, version{math.MaxUint64, math.MaxUint32}, 0, []uint64{0}},
		}}).encode(0xfedcba9876543210, nil, 0),
		"update-signed": (&message{header: up, entries: []testEntry{
			{26, version{5, 6}, 7 * time.Millisecond, []uint64{0b1001}},
		}}).encode(0xfedcba9876543210, ring, 0),
		"update-wide": (&message{header: up, entries: []testEntry{
			{26, version{5, 6}, time.Hour, []uint64{0, 1 << 63, 1}},
		}}).encode(0xfedcba9876543210, nil, 0),
	} {
		file := filepath.Join("testdata", "messages", name+".hex")
		got := strings.TrimSpace(hex.Dump(b)) + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestMessage_roundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		m := message{header: header{
			kind: typeUpdate, sender: topologyNode(r.IntN(1 << 20)), senderPort: r.IntN(1 << 16),
			session: r.Uint64(), counter: r.Uint64(), heard: r.Uint64(),
		}}
		for range r.IntN(5) {
			e := testEntry{r.IntN(1 << 20), version{r.Uint64(), r.Uint32()}, time.Duration(r.Uint32()) * time.Millisecond, make([]uint64, 3)}
			for range r.IntN(4) {
				e.down[r.IntN(3)] |= 1 << r.IntN(64)
			}
			m.entries = append(m.entries, e)
		}
		b := m.encode(99, nil, 0)
		h, err := parseHeader(b, 99)
		if err != nil || h != m.header {
			t.Fatalf("%+v became %+v, %v", m.header, h, err)
		}
		b = b[headerSize:]
		for _, want := range m.entries {
			c, rest, err := nextEntry(b)
			if err != nil || int(c.originator) != want.originator || c.version != want.version || c.age != want.age {
				t.Fatalf("%+v became %+v, %v", want, c, err)
			}
			for w := range want.down {
				if word(c.bitmap, w) != want.down[w] {
					t.Fatalf("%x became %x", want.down, c.bitmap)
				}
			}
			b = rest
		}
		if len(b) > 0 {
			t.Fatalf("%d bytes are left", len(b))
		}
	}
}

// RFC 1982, with the wrap, and the case that it leaves open.
func TestVersion_serialNumbersWrap(t *testing.T) {
	for _, c := range []struct {
		a, b version
		want int
	}{
		{version{1, 5}, version{1, 5}, 0},
		{version{1, 6}, version{1, 5}, 1},
		{version{2, 0}, version{1, math.MaxUint32}, 1},
		{version{1, 0}, version{1, math.MaxUint32}, 1},
		{version{1, 100}, version{1, math.MaxUint32 - 100}, 1},
		{version{1, 1<<31 - 1}, version{1, 0}, 1},
		{version{1, 1<<31 + 1}, version{1, 0}, -1},
		{version{1, 1 << 31}, version{1, 0}, 1},
		{version{math.MaxUint64, 0}, version{0, 0}, 1},
	} {
		if got := c.a.compare(c.b); got != c.want {
			t.Errorf("%v against %v: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := c.b.compare(c.a); got != -c.want {
			t.Errorf("%v against %v: %d, want %d", c.b, c.a, got, -c.want)
		}
	}
}

func TestKeyring_signsWithTheNewestWhoseTimeHasCome(t *testing.T) {
	secret := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	k := Keys{List: []Key{
		{ID: 1, Secret: secret(1), From: 10}, {ID: 2, Secret: secret(2), From: 30}, {ID: 3, Secret: secret(3), From: 20},
	}}
	ring := mustRing(t, k)
	all := mustRing(t, Keys{List: k.List[:2]})
	h := header{kind: typeUpdate}
	for _, c := range []struct {
		now  time.Duration
		want byte
	}{{0, 1}, {10, 1}, {19, 1}, {20, 3}, {29, 3}, {30, 2}, {1000, 2}} {
		b := ring.Sign(appendHeader(nil, &h, 0), c.now)
		if b[atKey] != c.want {
			t.Errorf("at %d signed with key %d, want %d", c.now, b[atKey], c.want)
		}
		_, err := all.Verify(b)
		if known := c.want != 3; known != (err == nil) || !known && err != RejectKey {
			t.Errorf("key %d: %v", c.want, err)
		}
		for i := range b {
			b[i] ^= 0x10
			if _, err := ring.Verify(b); err == nil {
				t.Fatalf("byte %d of %d may be changed", i, len(b))
			}
			b[i] ^= 0x10
		}
		if _, err := ring.Verify(b[:len(b)-1]); err == nil {
			t.Error("a MAC may be cut")
		}
	}
}

func TestKeyring_whoIsIntroducedTakesUnsigned(t *testing.T) {
	plain := appendHeader(nil, &header{kind: typeUpdate}, 0)
	none, strict := mustRing(t, Keys{}), mustRing(t, Keys{List: []Key{testKey}})
	lax := mustRing(t, Keys{List: []Key{testKey}, AcceptUnsigned: true})
	signed := strict.Sign(bytes.Clone(plain), 0)
	for _, c := range []struct {
		name   string
		ring   *Keyring
		packet []byte
		want   error
	}{
		{"no keys, plain", none, plain, nil},
		{"no keys, signed", none, signed, nil},
		{"keys, plain", strict, plain, RejectKey},
		{"keys, signed", strict, signed, nil},
		{"introduced, plain", lax, plain, nil},
		{"introduced, signed", lax, signed, nil},
		{"introduced, forged", lax, append(signed[:len(signed)-1:len(signed)-1], signed[len(signed)-1]^1), RejectMAC},
	} {
		b, err := c.ring.Verify(c.packet)
		if err != c.want || err == nil && len(b) != headerSize {
			t.Errorf("%s: %d bytes, %v, want %v", c.name, len(b), err, c.want)
		}
	}
}

func TestKeys_errorsNameTheField(t *testing.T) {
	long := make([]byte, 32)
	for _, c := range []struct {
		keys Keys
		says string
	}{
		{Keys{List: []Key{{ID: 0, Secret: long}}}, "List[0].ID"},
		{Keys{List: []Key{{ID: 1, Secret: long}, {ID: 2, Secret: long[:15]}}}, "List[1].Secret"},
		{Keys{List: []Key{{ID: 1, Secret: long}, {ID: 1, Secret: long}}}, "List[1].ID"},
		{Keys{List: make([]Key, 9)}, "9 keys"},
	} {
		if _, err := NewKeyring(c.keys); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want it to say %q", err, c.says)
		}
	}
}
