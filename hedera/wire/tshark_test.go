package wire

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/flowcell"
	"weft/internal/tsharktest"
	"weft/topoupdate"
)

// What tshark says of random messages is what the package's own decoder says.
func TestTshark_agreesWithTheDecoder(t *testing.T) {
	tsharktest.Require(t)
	r := rand.New(rand.NewPCG(24, 2))
	ring, err := topoupdate.NewKeyring(topoupdate.Keys{List: []topoupdate.Key{{ID: 9, Secret: make([]byte, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	var all []tsharktest.Packet
	for range 200 {
		h := header{kind: byte(typeHello + r.IntN(4)), fabric: r.Uint64(), node: randomAddr(r, r.IntN(2) == 0), session: r.Uint64(), counter: r.Uint64(),
			heard: r.Uint64(), epoch: r.Uint64()}
		b := appendHeader(nil, &h)
		switch h.kind {
		case typeAnswer:
			b = appendLeader(b, netip.AddrPortFrom(randomAddr(r, r.IntN(2) == 0), uint16(1+r.IntN(65535))))
		case typeReport, typePlacement:
			n := r.IntN(5)
			for range n {
				six := r.IntN(2) == 0
				tuple := flowcell.FiveTuple{Src: flowcell.AddressFrom(randomAddr(r, six)), Dst: flowcell.AddressFrom(randomAddr(r, six)),
					SrcPort: uint16(r.Uint32()), DstPort: uint16(r.Uint32()), Proto: uint8(r.Uint32())}
				if h.kind == typeReport {
					b = appendFlow(b, Flow{tuple, r.Uint64()})
				} else {
					b = appendPlacement(b, Placement{tuple, r.IntN(MaxPath + 1), randomAddr(r, r.IntN(2) == 0), time.Duration(r.Uint32()) * time.Millisecond})
				}
			}
			setCount(b, n)
		}
		end := len(b)
		if r.IntN(2) == 0 {
			b = ring.Sign(b, 0)
		}
		all = append(all, tsharktest.Packet{IP: tsharktest.UDP(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), Port, 50000, b), Want: wanted(t, b, end, h.fabric)})
	}
	tsharktest.Check(t, all)
}

func randomAddr(r *rand.Rand, six bool) netip.Addr {
	if !six {
		return netip.AddrFrom4([4]byte{10, byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())})
	}
	a := [16]byte{0xfd}
	for i := 1; i < 16; i++ {
		a[i] = byte(r.Uint32())
	}
	return netip.AddrFrom16(a)
}

// mapped is an address as tshark writes one of 16 bytes.
func mapped(a netip.Addr) string {
	return netip.AddrFrom16(a.As16()).String()
}

// wanted decodes a message that ends, but for its MAC, at end.
func wanted(t *testing.T, b []byte, end int, fabric uint64) map[string]string {
	t.Helper()
	h, err := parseHeader(b, fabric)
	if err != nil {
		t.Fatal(err)
	}
	w := map[string]string{"weft.version": "1", "weft.key": fmt.Sprint(b[atKey])}
	if end < len(b) {
		w["weft.mac"] = fmt.Sprintf("%x", b[end:])
	}
	lists := make(map[string][]string)
	put := func(key string, value any) {
		lists["weft.scheduler."+key] = append(lists["weft.scheduler."+key], fmt.Sprint(value))
	}
	put("type", h.kind)
	put("count", h.count)
	put("fabric", tsharktest.Hex(h.fabric, 16))
	put("node", mapped(h.node))
	put("session", tsharktest.Hex(h.session, 16))
	put("counter", h.counter)
	put("heard", tsharktest.Hex(h.heard, 16))
	put("epoch", h.epoch)
	body := b[headerSize:end]
	tuple := func(x flowcell.FiveTuple) {
		put("proto", x.Proto)
		put("src_port", x.SrcPort)
		put("dst_port", x.DstPort)
		suffix := ""
		if x.Src.Is6() {
			suffix = "6"
		}
		put("src"+suffix, x.Src)
		put("dst"+suffix, x.Dst)
	}
	if h.kind == typeAnswer {
		leader, err := parseLeader(body)
		if err != nil {
			t.Fatal(err)
		}
		put("leader", mapped(leader.Addr()))
		put("leader_port", leader.Port())
	}
	for range h.count {
		if h.kind == typeReport {
			x, rest, err := nextFlow(body)
			if err != nil {
				t.Fatal(err)
			}
			body = rest
			tuple(x.Tuple)
			put("rate", x.Rate)
			continue
		}
		x, rest, err := nextPlacement(body)
		if err != nil {
			t.Fatal(err)
		}
		body = rest
		tuple(x.Tuple)
		put("path", x.Path)
		put("for", x.For.Milliseconds())
		if x.Via.Is6() {
			put("via6", x.Via)
		} else {
			put("via", x.Via)
		}
	}
	for key, list := range lists {
		w[key] = strings.Join(list, ",")
	}
	return w
}
