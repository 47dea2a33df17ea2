package stack

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/waiter"

	"weft/third_party/netstack/tcp"
)

// byHand is a connection of netstack's whose other end, clock and processor are the test's.
type byHand struct {
	t        *testing.T
	net      *gstack.Stack
	clock    lateClock
	link     *channel.Endpoint
	ep       tcpip.Endpoint
	port     uint16
	seq, ack uint32 // of the test's next segment
}

// lateClock is a clock by hand whose timers run late, by nanoseconds.
type lateClock struct {
	*faketime.ManualClock
	by *atomic.Int64
}

func (c lateClock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	return lateTimer{c.ManualClock.AfterFunc(c.late(d), f), c}
}

func (c lateClock) late(d time.Duration) time.Duration { return d + time.Duration(c.by.Load()) }

type lateTimer struct {
	tcpip.Timer
	clock lateClock
}

func (t lateTimer) Reset(d time.Duration) { t.Timer.Reset(t.clock.late(d)) }

const byHandRTO = 20 * time.Millisecond

// connectByHand returns a connection that has sent nothing yet.
func connectByHand(t *testing.T) *byHand {
	t.Helper()
	c := &byHand{t: t, clock: lateClock{faketime.NewManualClock(), new(atomic.Int64)}, link: channel.New(256, 1500, ""), seq: 1000}
	c.net = gstack.New(gstack.Options{
		Clock:              c.clock,
		NetworkProtocols:   []gstack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []gstack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	t.Cleanup(c.net.Destroy)
	c.clock.Advance(time.Hour) // netstack takes its zero time for "never"
	least := tcpip.TCPMinRTOOption(byHandRTO)
	sack := tcpip.TCPSACKEnabled(true)
	var recovery tcpip.TCPRecovery // without RACK
	c.must(c.net.SetTransportProtocolOption(tcp.ProtocolNumber, &least))
	c.must(c.net.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	c.must(c.net.SetTransportProtocolOption(tcp.ProtocolNumber, &recovery))
	c.must(c.net.CreateNIC(nic, c.link))
	c.must(c.net.AddProtocolAddress(nic, protocolAddress(addrA), gstack.AddressProperties{}))
	c.net.SetRouteTable(routes(0))
	var wq waiter.Queue
	var err tcpip.Error
	c.ep, err = c.net.NewEndpoint(tcp.ProtocolNumber, header.IPv4ProtocolNumber, &wq)
	c.must(err)
	t.Cleanup(c.ep.Abort)
	if err := c.ep.Connect(fullAddress(netip.AddrPortFrom(addrB, 80))); err == nil {
		t.Fatal("connected without an answer")
	}
	c.clock.Advance(time.Millisecond)
	syn := c.sent()
	c.port, c.ack = syn.SourcePort(), syn.SequenceNumber()+1
	c.receive(header.TCPFlagSyn|header.TCPFlagAck, []byte{header.TCPOptionMSS, 4, 1448 >> 8, 1448 & 0xff, header.TCPOptionSACKPermitted, 2, 1, 1})
	c.seq++
	eventually(t, "connected", func() bool { return tcp.EndpointState(c.ep.State()) == tcp.StateEstablished })
	for c.link.NumQueued() > 0 {
		c.sent()
	}
	return c
}

func (c *byHand) must(err tcpip.Error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// sent takes the next packet that was sent.
func (c *byHand) sent() header.TCP {
	c.t.Helper()
	p := c.link.Read()
	if p == nil {
		c.t.Fatal("nothing was sent")
	}
	defer p.DecRef()
	b := p.ToView().AsSlice()
	return header.TCP(bytes.Clone(b[header.IPv4MinimumSize:]))
}

// receive hands a segment to netstack.
func (c *byHand) receive(flags header.TCPFlags, options []byte, payload ...byte) {
	offset := header.TCPMinimumSize + len(options)
	size := offset + len(payload)
	b := make([]byte, header.IPv4MinimumSize+size)
	ip := header.IPv4(b)
	from, to := tcpip.AddrFrom4(addrB.As4()), tcpip.AddrFrom4(addrA.As4())
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(tcp.ProtocolNumber), SrcAddr: from, DstAddr: to})
	ip.SetChecksum(^ip.CalculateChecksum())
	h := header.TCP(b[header.IPv4MinimumSize:])
	h.Encode(&header.TCPFields{SrcPort: 80, DstPort: c.port, SeqNum: c.seq, AckNum: c.ack, DataOffset: uint8(offset), Flags: flags, WindowSize: 60000})
	copy(h[header.TCPMinimumSize:], options)
	copy(h[offset:], payload)
	sum := header.PseudoHeaderChecksum(tcp.ProtocolNumber, from, to, uint16(size))
	h.SetChecksum(^checksum.Checksum(h, sum))
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	defer p.DecRef()
	c.link.InjectInbound(header.IPv4ProtocolNumber, p)
}

// unreachable hands netstack an ICMP message which says that the peer is.
func (c *byHand) unreachable() {
	from, to := tcpip.AddrFrom4(addrB.As4()), tcpip.AddrFrom4(addrA.As4())
	b := make([]byte, 2*header.IPv4MinimumSize+header.ICMPv4MinimumSize+8)
	outer, icmp, inner := header.IPv4(b), header.ICMPv4(b[header.IPv4MinimumSize:]), header.IPv4(b[header.IPv4MinimumSize+header.ICMPv4MinimumSize:])
	outer.Encode(&header.IPv4Fields{TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(header.ICMPv4ProtocolNumber), SrcAddr: from, DstAddr: to})
	outer.SetChecksum(^outer.CalculateChecksum())
	inner.Encode(&header.IPv4Fields{TotalLength: header.IPv4MinimumSize + header.TCPMinimumSize, TTL: 64, Protocol: uint8(tcp.ProtocolNumber), SrcAddr: to, DstAddr: from})
	inner.SetChecksum(^inner.CalculateChecksum())
	lost := header.TCP(inner[header.IPv4MinimumSize:])
	lost.SetSourcePort(c.port)
	lost.SetDestinationPort(80)
	icmp.SetType(header.ICMPv4DstUnreachable)
	icmp.SetCode(header.ICMPv4HostUnreachable)
	icmp.SetChecksum(^checksum.Checksum(icmp, 0))
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	defer p.DecRef()
	c.link.InjectInbound(header.IPv4ProtocolNumber, p)
}

// send writes three segments' worth, and empties the link.
func (c *byHand) send() int {
	c.t.Helper()
	data := make([]byte, 3*1448)
	n, err := c.ep.Write(bytes.NewReader(data), tcpip.WriteOptions{})
	c.must(err)
	left := int(n)
	for c.link.NumQueued() > 0 {
		left -= len(c.sent().Payload())
	}
	if left != 0 {
		c.t.Fatalf("%d of %d bytes were not sent", left, n)
	}
	return int(n)
}

// timeouts returns how many timeouts there have been once the processor has nothing to do.
func (h *byHand) timeouts() uint64 {
	h.net.Pause()
	h.net.Resume()
	return h.net.Stats().TCP.Timeouts.Value()
}
