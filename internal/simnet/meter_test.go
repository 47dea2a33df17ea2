package simnet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/conga"
	"weft/encap"
	"weft/topology"
)

// meterNetwork is two racks and one spine of 100 Mbit/s: 121.12 µs for a full
// packet.
func meterNetwork(t *testing.T, m *Meter) (n *Network, from, to topology.Node) {
	topo := parse(t, "leaf-spine:leaves=2,spines=1,hosts=4")
	n = network(t, topo, Config{Meter: m, HostQueueBytes: 1 << 20})
	return n, host(t, topo, "h0.0.2"), host(t, topo, "h0.1.2")
}

func probe(t *testing.T, from, to netip.Addr, spine *netip.Addr) []byte {
	t.Helper()
	b, err := encap.AppendSample(nil, encap.Sample{Path: 0, Token: 7, From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	if spine != nil {
		b = tunnel(t, from, *spine, b)
	}
	return b
}

func TestMeter_probeBringsTheQueuesThatItMet(t *testing.T) {
	for _, bounced := range []bool{false, true} {
		n, from, to := meterNetwork(t, &Meter{})
		topo := parse(t, "leaf-spine:leaves=2,spines=1,hosts=4")
		// Three other hosts fill the link to the spine at thrice its rate for ten
		// packets' time each: 20 packets wait when the last has come.
		for i := range 10 {
			for h := 1; h < 4; h++ {
				other := topo.Node(topology.NodeID(h))
				n.Inject(other.ID, udp(other.Addr, to.Addr, 1, uint32(i), 1500), 0)
			}
		}
		const packet = 121120 * time.Nanosecond
		var spine *netip.Addr
		if a := host(t, topo, "a0.0").Addr; bounced {
			spine = &a
		}
		at := 10*packet - time.Millisecond/10 // it arrives a little before the last three
		n.Advance(at, func(topology.NodeID, []byte) {})
		n.Inject(from.ID, probe(t, from.Addr, to.Addr, spine), at)
		var got encap.Sample
		for _, d := range drain(n) {
			if s, err := encap.ParseSample(d.packet); err == nil {
				got = s
			} else if encap.IsSample(d.packet) {
				t.Fatal(err)
			}
		}
		// Nine rounds of three came before it, and some eight or nine packets had left:
		// 18 or 19 wait at the edge switch, each a full unit and a bit; nothing does at
		// the spine, and at most a packet under way at the other edge switch.
		if got.Meters != 3 || got.Queue < 18 || got.Queue > 21 {
			t.Errorf("bounced %v: %d of %d meters, want 18 to 21 of 3", bounced, got.Queue, got.Meters)
		}
		if got.Token != 7 {
			t.Errorf("token %d", got.Token)
		}
	}
}

func TestMeter_hostsMeasureNothing(t *testing.T) {
	n, from, to := meterNetwork(t, &Meter{})
	for i := range 20 { // a queue of its own
		n.Inject(from.ID, udp(from.Addr, to.Addr, 1, uint32(i), 1500), 0)
	}
	n.Inject(from.ID, probe(t, from.Addr, to.Addr, nil), 0)
	for _, d := range drain(n) {
		// What left the host one by one meets one packet on the wire at most.
		if s, err := encap.ParseSample(d.packet); err == nil && (s.Queue > 3 || s.Meters != 3) {
			t.Errorf("%+v", s)
		}
	}
}

func TestMeter_marksAboveTheThreshold(t *testing.T) {
	const threshold = 10 * (1500 + FrameOverhead)
	for _, c := range []struct {
		ecn  encap.ECN
		want bool
	}{{encap.NotECT, false}, {encap.ECT0, true}, {encap.ECT1, true}, {encap.CE, true}} {
		n, _, to := meterNetwork(t, &Meter{ECNBytes: threshold})
		topo := parse(t, "leaf-spine:leaves=2,spines=1,hosts=4")
		for i := range 20 {
			for h := range 2 {
				other := topo.Node(topology.NodeID(h))
				b := udp(other.Addr, to.Addr, 1, uint32(i), 1500)
				b[1] |= byte(c.ecn)
				n.Inject(other.ID, seal(b), 0)
			}
		}
		all := drain(n)
		for i, d := range all {
			if checksum(d.packet[:20]) != 0 {
				t.Fatal("the header's checksum is wrong")
			}
			// Packets come in pairs, of which one leaves meanwhile: the queue grows by one
			// a pair, and is over ten from packet 22 or so on.
			marked := encap.ECN(d.packet[1]&3) == encap.CE
			if c.ecn == encap.CE || i < 19 || i > 25 {
				if want := c.ecn == encap.CE || c.want && i > 25; marked != want {
					t.Errorf("%v: packet %d is marked: %v", c.ecn, i, marked)
				}
			}
		}
		up, _ := n.Link(topology.LinkID(8)) // the first behind the hosts'
		if counted := up.Marked > 0; counted != (c.want && c.ecn != encap.CE) {
			t.Errorf("%v: %d marks counted", c.ecn, up.Marked)
		}
	}
}

func tcpWith(from, to netip.Addr, dscp uint8, id uint16) []byte {
	b := udp(from, to, 1, 0, 1500)
	b[1], b[9] = dscp<<2, 6
	binary.BigEndian.PutUint16(b[4:], id)
	return seal(b)
}

func TestMeter_raisesForwardMarksOnly(t *testing.T) {
	forward := conga.Mark{Tag: 5}.Put()
	for _, c := range []struct {
		name   string
		dscp   uint8
		id     uint16
		raised bool
	}{
		{"a mark", conga.MarkDSCP, forward, true},
		{"of a later segment", conga.MarkDSCP, forward + 40, true},
		{"feedback", conga.MarkDSCP, conga.Mark{Feedback: true, Tag: 5, Metric: 2}.Put(), false},
		{"as high already", conga.MarkDSCP, conga.Mark{Tag: 5, Metric: conga.MaxMetric}.Put(), false},
		{"no mark", 0, forward, false},
	} {
		n, from, to := meterNetwork(t, &Meter{Tau: time.Millisecond})
		topo := parse(t, "leaf-spine:leaves=2,spines=1,hosts=4")
		const packets = 100 // at the link's full rate
		for range packets {
			n.Inject(from.ID, tunnel(t, from.Addr, host(t, topo, "a0.0").Addr, tcpWith(from.Addr, to.Addr, c.dscp, c.id)), 0)
		}
		all := drain(n)
		if len(all) != packets {
			t.Fatalf("%d arrived", len(all))
		}
		last := all[packets-1].packet
		if checksum(last[:20]) != 0 {
			t.Errorf("%s: the header's checksum is wrong", c.name)
		}
		got := binary.BigEndian.Uint16(last[4:])
		was, is := conga.ParseMark(c.id), conga.ParseMark(got)
		if raised := is.Metric > was.Metric; raised != c.raised || is.Tag != was.Tag || is.Feedback != was.Feedback || got&0x3f != c.id&0x3f {
			t.Errorf("%s: ID %016b became %016b", c.name, c.id, got)
		}
		if c.raised && is.Metric != conga.MaxMetric {
			t.Errorf("%s: metric %d on a full link", c.name, is.Metric)
		}
	}
}

// Whatever comes in, in any wrapping, what the meter changes is what is marked: the
// rest goes through as without one.
func TestMeter_changesNothingElse(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		b := make([]byte, rng.IntN(120))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if len(b) > 9 {
			b[0] = []byte{0x45, 0x60, 0x46, b[0]}[rng.IntN(4)]
			b[9] = []byte{4, 6, 17, b[9]}[rng.IntN(4)]
			if rng.IntN(2) == 0 {
				b[6] = 4
			}
		}
		was := bytes.Clone(b)
		m := &Meter{Tau: time.Second}
		p := port{limit: 1 << 20}
		m.fit(&p)
		p.setRate(1e6)
		for range 40 {
			p.send(1514, 0)
		}
		p.measure(b, 0)
		inner, ok := innermost(b)
		if !bytes.Equal(b, was) && !(ok && (encap.IsSample(inner) || inner[1]>>2 == conga.MarkDSCP)) {
			t.Fatalf("seed %d: %x became %x", seed, was, b)
		}
	}
}

func FuzzMeter(f *testing.F) {
	addr := netip.MustParseAddr("10.0.0.2")
	sample, _ := encap.AppendSample(nil, encap.Sample{From: addr, To: addr})
	outer, _ := encap.NewIPIP(addr, addr)
	bounced := append(make([]byte, encap.Overhead), sample...)
	outer.Encapsulate(bounced, 0)
	labelled := append(append([]byte{0x60, 0, 0, 0, 0, byte(len(sample)), 4, 64}, make([]byte, 32)...), sample...)
	for _, b := range [][]byte{nil, sample, bounced, labelled, tcpWith(addr, addr, conga.MarkDSCP, conga.Mark{Tag: 1}.Put())} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sound := len(b) >= 20 && b[0] == 0x45 && checksum(b[:20]) == 0
		p := port{limit: 1 << 20}
		(&Meter{ECNBytes: 1, Tau: time.Second}).fit(&p)
		p.setRate(1e6)
		for range 40 {
			p.send(1514, 0)
		}
		size := len(b)
		if p.send(size+FrameOverhead, 0); size < 1<<16 {
			p.measure(b, 0)
		}
		if sound && checksum(b[:20]) != 0 {
			t.Errorf("the header's checksum is wrong: %x", b)
		}
	})
}

func TestMeter_badConfiguration(t *testing.T) {
	topo := fatTree(t, 4)
	for want, m := range map[string]Meter{
		"Meter.ECNBytes is -1": {ECNBytes: -1},
		"Meter.Tau is -1ns":    {Tau: -1},
		"Meter.QCMUnit is -1":  {QCMUnit: -1},
	} {
		if _, err := New(topo, Config{RateBits: 1e6, Meter: &m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestSetField_mendsTheChecksum(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100000 {
		b := make([]byte, 20)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b[0] = 0x45
		seal(b)
		setField(b, 4, uint16(rng.Uint32()))
		if checksum(b) != 0 {
			t.Fatalf("seed %d: %x", seed, b)
		}
	}
}
