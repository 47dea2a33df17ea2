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

// timeouts returns how many timeouts there have been once the processor has nothing to do.
func (h *byHand) timeouts() uint64 {
	h.net.Pause()
	h.net.Resume()
	return h.net.Stats().TCP.Timeouts.Value()
}

// Where timers are late, acknowledgements are, too. A timeout waits for them, four times as
// long as the timers were late, and no longer than 200 ms.
func TestTimeout_isLateWhereTimersAre(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		late        time.Duration
		nothing, by time.Duration // after RTO: no timeout yet; it has been
	}{
		{late: 0, by: 1 * ms},
		{late: 10 * ms, nothing: 39 * ms, by: 60 * ms},
		{late: 40 * ms, nothing: 159 * ms, by: 210 * ms},
		// Longer than all patience: what has come meanwhile is read first.
		{late: 500 * ms, nothing: 510 * ms, by: 1100 * ms},
	} {
		t.Run(c.late.String(), func(t *testing.T) {
			h := connectByHand(t)
			h.clock.by.Store(int64(c.late))
			h.send()
			h.clock.Advance(byHandRTO + c.nothing)
			if n := h.timeouts(); n != 0 && c.nothing > 0 {
				t.Errorf("%d timeouts %v after RTO", n, c.nothing)
			}
			h.clock.Advance(c.by - c.nothing)
			if n := h.timeouts(); n == 0 {
				t.Errorf("no timeout %v after RTO", c.by)
			}
		})
	}
}

// An acknowledgement that comes while a timeout is put off is in time. Once timers are no
// longer late, timeouts come at RTO again.
func TestTimeout_acknowledgedLate(t *testing.T) {
	h := connectByHand(t)
	h.clock.by.Store(int64(40 * time.Millisecond)) // 160 ms of patience
	h.ack += uint32(h.send())
	h.clock.Advance(byHandRTO + 100*time.Millisecond)
	h.receive(header.TCPFlagAck, nil)
	if n := h.timeouts(); n != 0 {
		t.Errorf("%d timeouts before the acknowledgement, which came 100 ms after RTO", n)
	}
	h.clock.by.Store(0)
	h.clock.Advance(20 * time.Second)
	h.send()
	h.clock.Advance(200 * time.Millisecond) // RTO is 136 ms now
	if n := h.timeouts(); n == 0 {
		t.Error("no timeout, 20 s after timers were late")
	}
}
