package dataplane

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/policy"
	"weft/resequencer"
)

// A packet of data says its path's tag, and every other one what there is to
// report, as long as there is something.
func TestStamp_marksAndReportsInTurns(t *testing.T) {
	e := testEgress(t, fatTree, "conga")
	packet := dataPacket(1, 1000)
	var dst flowcell.Packet
	_ = dst.Parse(packet)
	send := func(i int) conga.Mark {
		w := wrapOne(t, e, packet, time.Duration(i)*time.Second) // a flowlet each
		if w.inner[1] != conga.MarkDSCP<<2 || w.inner[6]&0x40 == 0 || !bytes.Equal(w.inner[12:], packet[12:]) {
			t.Fatalf("packet %d leaves as %x", i, w.inner[:20])
		}
		m := conga.ParseMark(uint16(w.number))
		if path := e.paths.to(dst.Flow.Dst).group; !m.Feedback && path.out[m.Tag].bounce != bounceOf(t, w) {
			t.Fatalf("packet %d by %s has tag %d", i, w.bounce, m.Tag)
		}
		if i := w.number.Index(); i == 0 || i == flowcell.MaxIndex+1 {
			t.Fatalf("the mark %04x has index %d, which has a meaning", w.number, i)
		}
		return m
	}
	for i := range 5 {
		if m := send(i); m.Feedback || m.Metric != 0 {
			t.Fatalf("there is nothing to report, but %+v", m)
		}
	}
	e.clock = &stillClock{Time: 5 * time.Second}
	for tag := range uint8(3) {
		e.receiveMarks([]arrivedMark{{dst.Flow.Dst, conga.Mark{Tag: tag, Metric: tag + 1}.Put()}})
	}
	var reports []conga.Mark
	for i := range 6 {
		m := wrapOne(t, e, packet, 5*time.Second)
		if p := conga.ParseMark(uint16(m.number)); p.Feedback != (i%2 == 0) {
			t.Fatalf("packet %d says %+v", i, p)
		} else if p.Feedback {
			reports = append(reports, p)
		}
	}
	tick := e.informed.table.Tick(5 * time.Second)
	for tag := range uint8(3) {
		if reports[tag] != (conga.Mark{Feedback: true, Tag: tag, Metric: tag + 1, Tick: tick}) {
			t.Errorf("reported is %+v", reports)
		}
	}
	// So does an acknowledgement, which says nothing else.
	ack := dataPacket(1, 0)
	if w := wrapOne(t, e, ack, 5*time.Second); !bytes.Equal(w.inner, ack) {
		t.Errorf("with nothing to report, an acknowledgement leaves as %x", w.inner[:20])
	}
	e.receiveMarks([]arrivedMark{{dst.Flow.Dst, conga.Mark{Tag: 2, Metric: 6}.Put()}})
	if w := wrapOne(t, e, ack, 5*time.Second); conga.ParseMark(uint16(w.number)) != (conga.Mark{Feedback: true, Tag: 2, Metric: 6, Tick: tick}) || w.inner[1]>>2 != conga.MarkDSCP {
		t.Errorf("an acknowledgement leaves as %x", w.inner[:20])
	}
	// What others say of the way there decides: the tag with the least wins.
	for tag := range uint8(4) {
		e.receiveMarks([]arrivedMark{{dst.Flow.Dst, conga.Mark{Feedback: true, Tag: tag, Metric: 7 * min(1, tag^2)}.Put()}})
	}
	if w := wrapOne(t, e, packet, 5*time.Second+time.Millisecond); w.bounce != "3.2" {
		t.Errorf("a flowlet goes by %s, all but 3.2 are congested", w.bounce)
	}
	// From whom nothing is sent to, nothing is taken.
	before := e.informed.table.Stats()
	for last := range byte(100) {
		e.receiveMarks([]arrivedMark{{flowcell.AddressFrom(fatTree.EmbeddedAddr(0).Next()), uint16(last) << 8}, {flowcell.Address{}, 0}})
	}
	if s := e.informed.table.Stats(); s != before {
		t.Errorf("after marks of strangers %+v, before %+v", s, before)
	}
}

// Where the field is the sender's there is no mark: with a DSCP of its own, on
// what is not data, and by other policies.
func TestStamp_leavesOthersAlone(t *testing.T) {
	for _, name := range policy.Names() {
		for _, c := range []struct {
			what   string
			packet []byte
			room   bool
		}{
			{"data", dataPacket(1, 100), true},
			{"ECT(1)", with(dataPacket(1, 100), func(b []byte) { b[1] = 1 }), true},
			{"a DSCP", with(dataPacket(1, 100), func(b []byte) { b[1] = 0xb8 }), false},
			{"an acknowledgement", dataPacket(1, 0), false},
			{"a datagram", with(dataPacket(1, 100), func(b []byte) { b[9] = 17 }), false},
		} {
			was := c.packet[1]
			w := wrapOne(t, testEgress(t, fatTree, name), c.packet, 0)
			if marked := w.inner[1]>>2 == conga.MarkDSCP; marked != (c.room && name == "conga") || w.inner[1]&3 != was&3 || !marked && w.inner[1] != was {
				t.Errorf("%s: %s leaves with TOS %02x", name, c.what, w.inner[1])
			}
		}
	}
}

// A mark is taken off whatever the policy: TCP gets what TCP sent, with the ECN
// that the way has made of it, and the resequencer no number.
func TestIngress_takesMarksOff(t *testing.T) {
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		for _, ecn := range []byte{0, 1, 2, 3} {
			e := testEgress(t, fatTree, "conga", func(c *Config) { c.Carrier = carrier })
			sent := with(dataPacket(1, 100), func(b []byte) { b[1], b[6] = ecn, 0x40 })
			withTCPChecksum(sent)
			inner, err := e.arrives(bytes.Clone(sent))
			if err != nil {
				t.Fatal(err)
			}
			up := &recorder{max: link.MaxSuperLen}
			in := newIngress(newPlainSource(nil), newToKernel(up), resequencer.Config{}, &handClock{})
			in.accepts = func(*flowcell.Packet, []byte) bool { return true }
			in.relays = true
			in.Receive(inner)
			if in.stats.Marked != 1 || len(up.written) != 1 || !bytes.Equal(up.written[0].packet, sent) {
				t.Errorf("%v: %x became %x; %+v", carrier, sent, up.written, in.stats)
			}
		}
	}
}

// arrives is what a packet is at the receiver.
func (e *Egress) arrives(packet []byte) ([]byte, error) {
	out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0)
	if out[0]>>4 == 6 {
		return encap.DecapsulateSRv6(out)
	}
	return encap.Decapsulate(out)
}

// A congestion mark that a switch has made reaches the kernel: whatever is merged
// with what, no segment gets one or loses one.
func TestGateway_carriesCongestionMarks(t *testing.T) {
	up := &recorder{max: link.MaxSuperLen}
	in := newIngress(newPlainSource(nil), newToKernel(up), resequencer.Config{}, &handClock{})
	in.accepts = func(*flowcell.Packet, []byte) bool { return true }
	in.relays = true
	const each = 1000
	want := map[uint32]byte{}
	for i := range 40 {
		b := dataPacket(1, each)
		b[1], b[6] = byte(encap.ECT0), 0x40
		if i%7 == 3 || i%11 == 5 || i == 6 {
			b[1] = byte(encap.CE)
		}
		seq := 1 + uint32(i)*each
		binary.BigEndian.PutUint32(b[24:], seq)
		want[seq] = b[1]
		in.take(&Arrived{Bytes: withTCPChecksum(fixed(b)), Slot: lent}, 0)
	}
	in.push(0)
	in.release(0, false)
	got := 0
	for _, w := range up.written {
		seq := binary.BigEndian.Uint32(w.packet[24:])
		for at := 40; at < len(w.packet); at += each {
			if want[seq] != w.packet[1]&3 {
				t.Fatalf("the segment at %d has %d, sent as %d", seq, w.packet[1]&3, want[seq])
			}
			seq += each
			got++
		}
	}
	if got != 40 || len(up.written) > 25 {
		t.Errorf("%d segments in %d packets", got, len(up.written))
	}
}

func TestRelabel_mendsTheChecksum(t *testing.T) {
	for id := 0; id < 1<<16; id += 251 {
		for _, dscp := range []uint8{0, 9, 63} {
			b := with(dataPacket(1, 10), func(b []byte) { b[1], b[4], b[5] = byte(id>>3), byte(id), byte(id>>8) })
			relabel(b, dscp, uint16(id))
			if !header.IPv4(b).IsChecksumValid() || b[1]>>2 != dscp || b[1]&3 != byte(id>>3)&3 || binary.BigEndian.Uint16(b[4:]) != uint16(id) {
				t.Fatalf("%x", b[:20])
			}
		}
	}
}

// bounceOf is the address of the core by which a packet went.
func bounceOf(t *testing.T, w wrapped) netip.Addr {
	t.Helper()
	return fatTree.Node(node(t, fatTree, w.bounce)).Addr
}

// What a host reports is about the way to itself: to its neighbour the choice stays. A
// tag that no path to the rack has says nothing.
func TestReceiveMarks_moveWhatIsSentToTheirHostOnly(t *testing.T) {
	e := testEgress(t, fatTree, "conga")
	e.clock = &stillClock{Time: time.Second}
	packet, mate := dataPacket(1, 1000), with(dataPacket(2, 1000), func(b []byte) { b[19]-- })
	var liar flowcell.Packet
	_ = liar.Parse(packet)
	wrapOne(t, e, packet, time.Second)
	wrapOne(t, e, mate, time.Second)
	for tag := range uint8(4) {
		e.receiveMarks([]arrivedMark{{liar.Flow.Dst, conga.Mark{Feedback: true, Tag: tag, Metric: 7 * min(1, tag^2)}.Put()}})
	}
	e.receiveMarks([]arrivedMark{{liar.Flow.Dst, conga.Mark{Feedback: true, Tag: 9, Metric: 7}.Put()}})
	by := map[string]int{}
	for port := range uint16(64) {
		if w := wrapOne(t, e, dataPacket(100+port, 1), time.Second); w.bounce != "3.2" {
			t.Errorf("to the host that says so a flowlet goes by %s", w.bounce)
		}
		w := wrapOne(t, e, with(dataPacket(100+port, 1), func(b []byte) { b[19]-- }), time.Second)
		by[w.bounce]++
	}
	for _, core := range []string{"3.0", "3.1", "3.2", "3.3"} {
		if by[core] < 4 {
			t.Errorf("to its neighbour go %v of 64 flowlets", by)
		}
	}
	for _, d := range e.informed.table.Destinations(time.Second) {
		for _, u := range d.Tags {
			if u.Tag > 3 || u.Age >= 0 && e.paths.byNumber()[d.Destination].host != fatTree.Node(15).Addr {
				t.Errorf("known is %+v", d)
			}
		}
	}
}
