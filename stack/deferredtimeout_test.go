package stack

import (
	"bytes"
	"net/netip"
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
	clock    *faketime.ManualClock
	link     *channel.Endpoint
	ep       tcpip.Endpoint
	port     uint16
	seq, ack uint32 // of the test's next segment
}

const byHandRTO = 20 * time.Millisecond

// connectByHand returns a connection that has sent nothing yet.
func connectByHand(t *testing.T) *byHand {
	t.Helper()
	c := &byHand{t: t, clock: faketime.NewManualClock(), link: channel.New(256, 1500, ""), seq: 1000}
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

// receive hands a segment without payload to netstack.
func (c *byHand) receive(flags header.TCPFlags, options []byte) {
	size := header.TCPMinimumSize + len(options)
	b := make([]byte, header.IPv4MinimumSize+size)
	ip := header.IPv4(b)
	from, to := tcpip.AddrFrom4(addrB.As4()), tcpip.AddrFrom4(addrA.As4())
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(tcp.ProtocolNumber), SrcAddr: from, DstAddr: to})
	ip.SetChecksum(^ip.CalculateChecksum())
	h := header.TCP(b[header.IPv4MinimumSize:])
	h.Encode(&header.TCPFields{SrcPort: 80, DstPort: c.port, SeqNum: c.seq, AckNum: c.ack, DataOffset: uint8(size), Flags: flags, WindowSize: 60000})
	copy(h[header.TCPMinimumSize:], options)
	sum := header.PseudoHeaderChecksum(tcp.ProtocolNumber, from, to, uint16(size))
	h.SetChecksum(^checksum.Checksum(h, sum))
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

// A timer that expires while an acknowledgement waits for the processor is no timeout: what
// it has run for has arrived. If what waits acknowledges nothing, the timeout comes then.
func TestTimeout_waitsForWhatIsQueued(t *testing.T) {
	for _, c := range []struct {
		name     string
		acked    int // of the bytes sent, in 3
		queued   bool
		timeouts uint64
	}{
		{"all is acknowledged", 3, true, 0},
		{"a part is acknowledged, and starts the timer anew", 1, true, 0},
		{"a duplicate acknowledgement", 0, true, 1},
		{"nothing waits", 0, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := connectByHand(t)
			n := h.send()
			h.net.Pause()
			if c.queued {
				h.ack += uint32(n * c.acked / 3)
				h.receive(header.TCPFlagAck, nil)
			}
			h.clock.Advance(byHandRTO + time.Millisecond)
			if got := h.net.Stats().TCP.Timeouts.Value(); c.queued && got != 0 {
				t.Errorf("%d timeouts before the acknowledgement was processed", got)
			}
			h.net.Resume()
			h.net.Pause() // the processor has nothing left to do
			h.net.Resume()
			if got := h.net.Stats().TCP.Timeouts.Value(); got != c.timeouts {
				t.Errorf("%d timeouts, want %d", got, c.timeouts)
			}
			if got := h.net.Stats().TCP.Retransmits.Value(); got != c.timeouts {
				t.Errorf("%d segments sent again, want %d", got, c.timeouts)
			}
			// Whatever came before, a timer runs for what is not acknowledged yet.
			before := h.net.Stats().TCP.Timeouts.Value()
			h.clock.Advance(time.Second)
			if after := h.net.Stats().TCP.Timeouts.Value(); (after > before) != (c.acked < 3) {
				t.Errorf("%d timeouts in the next second", after-before)
			}
		})
	}
}
