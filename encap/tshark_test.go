package encap_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/tsharktest"
)

// What tshark says of random packets is what the package's own decoders say.
func TestTshark_agreesWithTheDecoders(t *testing.T) {
	tsharktest.Require(t)
	random := rand.New(rand.NewPCG(24, 2))
	var all []tsharktest.Packet
	for range 60 {
		all = append(all, probePacket(t, random, false), probePacket(t, random, true), samplePacket(t, random), feedbackPacket(t, random))
		for _, cipher := range []string{"", "gmac", "aes-gcm"} {
			all = append(all, tunnelPacket(t, random, cipher))
		}
		all = append(all, labelPacket(t, random), dataPacket(random))
	}
	tsharktest.Check(t, all)
}

func address(random *rand.Rand, six bool) netip.Addr {
	if six {
		var a [16]byte
		for i := range a {
			a[i] = byte(random.Uint32())
		}
		a[0], a[1] = 0xfd, 0
		return netip.AddrFrom16(a)
	}
	return netip.AddrFrom4([4]byte{10, byte(random.Uint32()), byte(random.Uint32()), byte(1 + random.IntN(250))})
}

// behind puts a packet into IP-in-IP or nothing.
func behind(t *testing.T, random *rand.Rand, inner []byte) []byte {
	t.Helper()
	if random.IntN(2) == 0 {
		return inner
	}
	o, err := encap.NewIPIPOuter(address(random, false), address(random, false))
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), uint16(random.Uint32()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func probePacket(t *testing.T, random *rand.Rand, six bool) tsharktest.Packet {
	p := encap.Probe{Kind: encap.ProbeKind(1 + random.IntN(3)), Path: uint16(random.Uint32()), Token: random.Uint64(),
		Origin: address(random, six), Target: address(random, six), Carrier: encap.Carrier(random.IntN(3)),
		Padding: random.IntN(200), AsData: random.IntN(2) == 0}
	if p.Kind == encap.Boomerang {
		p.Target = p.Origin
	}
	if random.IntN(2) == 0 && p.Padding >= 4 {
		p.Via = address(random, six)
	}
	b, err := encap.AppendProbe(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = encap.ParseProbe(b); err != nil {
		t.Fatal(err)
	}
	w := map[string]string{"weft.probe.kind": fmt.Sprint(uint8(p.Kind)), "weft.probe.path": fmt.Sprint(p.Path), "weft.probe.token": tsharktest.Hex(p.Token, 16),
		"weft.probe.carrier": fmt.Sprint(uint8(p.Carrier)), "weft.probe.padding": fmt.Sprint(p.Padding), "weft.probe.as_data": tsharktest.Bool(p.AsData), "weft.version": "1"}
	if six {
		w["weft.probe.via6"] = "::"
		if p.Via.IsValid() {
			w["weft.probe.via6"] = p.Via.String()
		}
	} else {
		w["weft.probe.origin"], w["weft.probe.target"] = p.Origin.String(), p.Target.String()
		if p.Via.IsValid() {
			w["weft.probe.via"] = p.Via.String()
		}
	}
	return tsharktest.Packet{IP: behind(t, random, b), Want: w}
}

func samplePacket(t *testing.T, random *rand.Rand) tsharktest.Packet {
	s := encap.Sample{Path: random.Uint32N(encap.MaxSamplePath + 1), ACK: random.IntN(2) == 0, Queue: uint8(random.IntN(128)), Meters: uint8(random.Uint32()),
		Marked: random.IntN(2) == 0, Token: random.Uint64(), Received: time.Duration(random.Int64() - random.Int64()), From: address(random, false), To: address(random, false)}
	b, err := encap.AppendSample(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = encap.ParseSample(b); err != nil {
		t.Fatal(err)
	}
	return tsharktest.Packet{IP: behind(t, random, b), Want: map[string]string{"weft.sample.path": fmt.Sprint(s.Path), "weft.sample.ack": tsharktest.Bool(s.ACK),
		"weft.sample.queue": fmt.Sprint(s.Queue), "weft.sample.meters": fmt.Sprint(s.Meters), "weft.sample.marked": tsharktest.Bool(s.Marked), "weft.sample.token": tsharktest.Hex(s.Token, 16),
		"weft.sample.received": fmt.Sprint(int64(s.Received)), "weft.version": "1"}}
}

func feedbackPacket(t *testing.T, random *rand.Rand) tsharktest.Packet {
	f := encap.Feedback{Level: uint8(1 + random.IntN(63)), Queue: random.Uint32()}
	copy(f.Packet[:], tcp(address(random, false), address(random, false), random, 1000, 0))
	key := uint8(random.IntN(2) * (1 + random.IntN(255)))
	b, err := encap.AppendFeedback(nil, f, key, []byte("a secret of twenty bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = encap.ParseFeedback(b, nil); err != nil {
		t.Fatal(err)
	}
	w := map[string]string{"weft.feedback.level": fmt.Sprint(f.Level), "weft.feedback.queue": fmt.Sprint(f.Queue), "weft.key": fmt.Sprint(key), "weft.version": "1",
		"weft.feedback.src": f.Source().Addr().String(), "weft.feedback.src_port": fmt.Sprint(f.Source().Port()),
		"weft.feedback.dst": f.Dest().Addr().String(), "weft.feedback.dst_port": fmt.Sprint(f.Dest().Port()), "weft.feedback.seq": fmt.Sprint(f.Seq())}
	if key != 0 {
		w["weft.mac"] = fmt.Sprintf("%x", b[len(b)-32:])
	}
	return tsharktest.Packet{IP: tsharktest.UDP(address(random, false), address(random, false), 1234, encap.FeedbackPort, b), Want: w}
}

// tcp returns a TCP segment whose IPv4 ID is as given.
func tcp(src, dst netip.Addr, random *rand.Rand, payload int, id uint16) []byte {
	b := tsharktest.UDP(src, dst, 0, 0, make([]byte, 12+payload)) // as long as TCP's header and its payload
	b[9] = 6
	binary.BigEndian.PutUint16(b[20:], uint16(40000+random.IntN(1000)))
	binary.BigEndian.PutUint16(b[22:], 80)
	binary.BigEndian.PutUint32(b[24:], random.Uint32())
	clear(b[28:40])
	b[32], b[33] = 5<<4, flowcell.FlagACK
	flowcell.Number(id).Stamp(b)
	return b
}

func tunnelPacket(t *testing.T, random *rand.Rand, cipher string) tsharktest.Packet {
	// Encrypted datagrams are found at the ports that tshark is told of, others at all.
	port := uint16(tsharktest.TunnelPort)
	if cipher != "aes-gcm" && random.IntN(2) == 0 {
		port = 7000
	}
	h := encap.UDPHeader{Path: uint8(random.Uint32()), Flowcell: uint16(random.Uint32()), Number: random.Uint32(), HasFeedback: random.IntN(2) == 0, Partial: random.IntN(2) == 0}
	if h.HasFeedback {
		h.Feedback = random.Uint32()
	}
	inner := tcp(address(random, false), address(random, false), random, 1+random.IntN(100), uint16(random.Uint32())|63)
	w := map[string]string{}
	var b []byte
	if cipher == "" {
		b = append(make([]byte, encap.UDPOverhead), inner...)
		encap.PutUDP(b, h)
	} else {
		key := encap.UDPKey{ID: uint8(1 + random.IntN(255)), Secret: [32]byte{1, 2, 3}}
		if err := key.Cipher.UnmarshalText([]byte(cipher)); err != nil {
			t.Fatal(err)
		}
		s, err := encap.NewSealer(key, "a", "b", time.Date(2027, 1, 1, 0, 0, 0, random.IntN(1e9), time.UTC), [3]byte{byte(random.Uint32()), 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		b = append(make([]byte, s.Overhead()), inner...)
		if err := s.Seal(b, h); err != nil {
			t.Fatal(err)
		}
		w["weft.key"], w["weft.tunnel.salt"] = fmt.Sprint(key.ID), fmt.Sprintf("%x", b[13:16])
		w["weft.tunnel.counter"], w["weft.mac"] = fmt.Sprint(binary.BigEndian.Uint64(b[16:])), fmt.Sprintf("%x", b[24:40])
	}
	pair, hidden := encap.UDPPair(b)
	if hidden {
		w["weft.tunnel.pair"], w["weft.tunnel.ciphertext"] = tsharktest.Hex(uint64(pair), 8), fmt.Sprintf("%x", b[encap.UDPHiddenOverhead:])
	} else {
		w["tcp.dstport"] = "80"
	}
	n := flowcell.Number(h.Flowcell)
	for k, v := range map[string]string{"path": fmt.Sprint(h.Path), "flowcell": fmt.Sprint(n.Cell()), "segment": fmt.Sprint(n.Index()), "number": fmt.Sprint(h.Number),
		"feedback": tsharktest.Hex(uint64(h.Feedback), 8), "has_feedback": tsharktest.Bool(h.HasFeedback), "partial": tsharktest.Bool(h.Partial),
		"sealed": tsharktest.Bool(cipher != ""), "hidden": tsharktest.Bool(hidden)} {
		w["weft.tunnel."+k] = v
	}
	w["weft.version"] = "1"
	return tsharktest.Packet{IP: tsharktest.UDP(address(random, false), address(random, false), uint16(40000+random.IntN(9000)), port, b), Want: w}
}

func labelPacket(t *testing.T, random *rand.Rand) tsharktest.Packet {
	ports := make([]int, random.IntN(7))
	var want []string
	for i := range ports {
		ports[i] = random.IntN(encap.MaxSIDPort + 1)
		want = append(want, fmt.Sprint(ports[i]))
	}
	sids, err := encap.SIDs(ports)
	if err != nil {
		t.Fatal(err)
	}
	o, err := encap.NewSRv6Outer(address(random, true), sids)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), tcp(address(random, false), address(random, false), random, 10, 63)...), 0)
	if err != nil {
		t.Fatal(err)
	}
	w := map[string]string{"weft.label.end": "End.DX4", "tcp.dstport": "80"}
	if len(want) > 0 {
		w["weft.label"] = strings.Join(want, ",")
	}
	return tsharktest.Packet{IP: b, Want: w}
}

func dataPacket(random *rand.Rand) tsharktest.Packet {
	id := uint16(random.Uint32())
	b := tcp(address(random, false), address(random, false), random, 100, id)
	w := map[string]string{"tcp.dstport": "80"}
	switch n := flowcell.Number(id); {
	case random.IntN(2) == 0:
		b[1] = conga.MarkDSCP << 2
		m := conga.ParseMark(id)
		w["weft.mark.feedback"], w["weft.mark.tag"] = tsharktest.Bool(m.Feedback), fmt.Sprint(m.Tag)
		w["weft.mark.metric"], w["weft.mark.tick"] = fmt.Sprint(m.Metric), fmt.Sprint(m.Tick)
	case n.Index() <= flowcell.MaxIndex:
		w["weft.flowcell"], w["weft.segment"] = fmt.Sprint(n.Cell()), fmt.Sprint(n.Index())
	}
	return tsharktest.Packet{IP: b, Want: w}
}

// A capture with --snap has the beginnings of packets. Nothing in them is said to be broken, and
// lengths are those on the wire.
func TestTshark_cutPackets(t *testing.T) {
	tsharktest.Require(t)
	random := rand.New(rand.NewPCG(24, 3))
	var all []tsharktest.Packet
	for range 30 {
		for _, p := range []tsharktest.Packet{tunnelPacket(t, random, ""), tunnelPacket(t, random, "gmac"), probePacket(t, random, false), probePacket(t, random, true)} {
			p.Cut = 1
			if n, err := strconv.Atoi(p.Want["weft.probe.padding"]); err == nil {
				p.Cut = max(0, n-4) // behind Via
			}
			all = append(all, p)
		}
	}
	tsharktest.Check(t, all)
}
