package stack

import (
	"bytes"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/flowcell"
)

// segmentOf is the n-th of many segments of 100 bytes, all of which are n.
func segmentOf(n int) received {
	b := dataPacket(7, 100)
	t := header.TCP(b[20:])
	t.SetSequenceNumber(uint32(1000 + 100*n))
	for i := range b[40:] {
		b[40+i] = byte(n)
	}
	return received{gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: buffer.MakeWithData(b)}), 0}
}

// The first packet becomes the super-segment: its headers say so, and behind
// them is the payload of all.
func TestMerger_makesOneOfMany(t *testing.T) {
	var m merger
	if m.add(segmentOf(0)) {
		t.Fatal("there is nothing to continue")
	}
	if m.start(segmentOf(0)) != nil {
		t.Fatal("there was nothing before")
	}
	for n := 1; n < 10; n++ {
		if !m.add(segmentOf(n)) {
			t.Fatalf("segment %d is not merged", n)
		}
	}
	if m.add(segmentOf(11)) {
		t.Fatal("a gap is merged")
	}
	p := m.start(segmentOf(11))
	b := p.Data().AsRange().ToSlice()
	p.DecRef()
	var want []byte
	for n := range 10 {
		want = append(want, bytes.Repeat([]byte{byte(n)}, 100)...)
	}
	if ip := header.IPv4(b); !bytes.Equal(b[40:], want) || int(ip.TotalLength()) != len(b) || !ip.IsChecksumValid() {
		t.Errorf("%x", b)
	}
	if p = m.start(received{}); p == nil || p.Data().Size() != 140 || m.start(received{}) != nil {
		t.Error("the last one is not there, or twice")
	}
	p.DecRef()
}

func TestHost_mergesWhatComesTogether(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	transfer(t, a, b, 5_000_000)
	// The last acknowledgements may be under way, and the counters are read one after the other.
	right := func(s Stats) bool {
		return s.Ingress.Merged > 0 && s.Ingress.Delivered+s.Ingress.Merged == s.Ingress.Packets && s.TCP.SegmentsReceived == s.Ingress.Delivered
	}
	for end := time.Now().Add(time.Minute); !right(b.Stats()); time.Sleep(time.Millisecond) {
		if s := b.Stats(); !right(s) && time.Now().After(end) {
			t.Fatalf("TCP takes %d segments of %+v", s.TCP.SegmentsReceived, s.Ingress)
		}
	}
}

// That TCP's checksums are taken for verified must not hold for others.
func TestHost_udpChecksumIsStillVerified(t *testing.T) {
	w := newWire(t)
	b := newHost(t, w, addrB)
	c, err := b.ListenPacket("udp", ":9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, text := range []string{"bad", "good"} {
		p := make([]byte, 28+len(text))
		ip := header.IPv4(p)
		ip.Encode(&header.IPv4Fields{
			TotalLength: uint16(len(p)), TTL: 64, Protocol: flowcell.ProtoUDP,
			SrcAddr: tcpip.AddrFrom4(addrA.As4()), DstAddr: tcpip.AddrFrom4(addrB.As4()),
		})
		ip.SetChecksum(^ip.CalculateChecksum())
		udp := header.UDP(p[20:])
		udp.Encode(&header.UDPFields{SrcPort: 9, DstPort: 9, Length: uint16(len(udp))})
		copy(p[28:], text)
		sum := header.PseudoHeaderChecksum(header.UDPProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), uint16(len(udp)))
		sum = checksum.Checksum([]byte(text), sum)
		if udp.SetChecksum(^udp.CalculateChecksum(sum)); text == "bad" {
			p[28] ^= 1
		}
		w.forward(p)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 100)
	if n, _, err := c.ReadFrom(buf); err != nil || string(buf[:n]) != "good" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
