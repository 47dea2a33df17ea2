package topoupdate

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/internal/tsharktest"
)

// What tshark says of random messages is what the package's own decoder says.
func TestTshark_agreesWithTheDecoder(t *testing.T) {
	tsharktest.Require(t)
	r := rand.New(rand.NewPCG(24, 2))
	ring := mustRing(t, Keys{List: []Key{testKey}})
	var all []tsharktest.Packet
	for range 200 {
		m := message{header: header{kind: byte(typeHello + r.IntN(2)), sender: topologyNode(r.IntN(1 << 20)), senderPort: r.IntN(1 << 16),
			session: r.Uint64(), counter: r.Uint64(), heard: r.Uint64()}}
		if m.kind == typeHello {
			m.hello = hello{time.Duration(r.Uint32()) * time.Microsecond, 1 + r.IntN(255), r.IntN(2) == 0, r.IntN(2) == 0}
		} else {
			for range r.IntN(5) {
				e := testEntry{r.IntN(1 << 20), version{r.Uint64(), r.Uint32()}, time.Duration(r.Uint32()) * time.Millisecond, make([]uint64, 3)}
				for range r.IntN(4) {
					e.down[r.IntN(3)] |= 1 << r.IntN(64)
				}
				m.entries = append(m.entries, e)
			}
		}
		signed := r.IntN(2) == 0
		signer := ring
		if !signed {
			signer = nil
		}
		b := m.encode(r.Uint64(), signer, 0)
		all = append(all, tsharktest.Packet{IP: tsharktest.UDP(netip.MustParseAddr("10.0.0.1"), Group, Port, Port, b), Want: wanted(t, b, signed)})
	}
	tsharktest.Check(t, all)
}

// wanted decodes a message.
func wanted(t *testing.T, b []byte, signed bool) map[string]string {
	t.Helper()
	fingerprint := uint64(0)
	for _, c := range b[atFingerprint : atFingerprint+8] {
		fingerprint = fingerprint<<8 | uint64(c)
	}
	h, err := parseHeader(b, fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	w := map[string]string{"weft.version": "1", "weft.key": fmt.Sprint(b[atKey])}
	put := func(key string, value any) { w["weft.update."+key] = fmt.Sprint(value) }
	put("type", h.kind)
	put("count", h.count)
	put("fabric", tsharktest.Hex(fingerprint, 16))
	put("sender", uint32(h.sender))
	put("sender_port", h.senderPort)
	put("session", tsharktest.Hex(h.session, 16))
	put("counter", h.counter)
	put("heard", tsharktest.Hex(h.heard, 16))
	body := b[headerSize:]
	if signed {
		w["weft.mac"] = fmt.Sprintf("%x", b[len(b)-macSize:])
		body = body[:len(body)-macSize]
	}
	if h.kind == typeHello {
		m, err := parseHello(body, h.count)
		if err != nil {
			t.Fatal(err)
		}
		put("interval", m.interval.Microseconds())
		put("multiplier", m.multiplier)
		put("down", tsharktest.Bool(m.down))
		put("leaving", tsharktest.Bool(m.leaving))
		return w
	}
	lists := make(map[string][]string)
	for range h.count {
		c, rest, err := nextEntry(body)
		if err != nil {
			t.Fatal(err)
		}
		body = rest
		for key, value := range map[string]any{"originator": uint32(c.originator), "incarnation": c.incarnation, "sequence": c.sequence, "age": c.age.Milliseconds()} {
			lists[key] = append(lists[key], fmt.Sprint(value))
		}
		if len(c.bitmap) > 0 {
			lists["bitmap"] = append(lists["bitmap"], fmt.Sprintf("%x", c.bitmap))
		}
		for i := range 8 * len(c.bitmap) {
			if c.bitmap[i/8]>>(i%8)&1 == 1 {
				lists["port_down"] = append(lists["port_down"], fmt.Sprint(i))
			}
		}
	}
	for key, list := range lists {
		put(key, strings.Join(list, ","))
	}
	return w
}
