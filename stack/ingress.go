package stack

import (
	"errors"
	"net"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/flowcell"
	"weft/resequencer"
)

// ingress takes packets from the device to netstack: check, resequence,
// deliver. One goroutine reads, unless time is virtual; a timer releases what
// has waited too long.
type ingress struct {
	dev        Device
	self       flowcell.Address
	up         *endpoint
	clock      Clock
	virtual    *virtual
	timestamps bool          // Config.Timestamps
	done       chan struct{} // closed when the reader has ended

	mu       sync.Mutex
	reseq    *resequencer.Buffer[*gstack.PacketBuffer]
	segments []flowcell.Packet // of the batch, for the resequencer
	packets  []*gstack.PacketBuffer
	ready    []*gstack.PacketBuffer // to be delivered, in this order
	merge    merger
	timer    Timer
	closed   bool
	stats    IngressStats
}

// ingressBatch is the most packets that are read in one call.
const ingressBatch = 64

func newIngress(c Config, up *endpoint, v *virtual) *ingress {
	in := &ingress{
		dev:        c.Device,
		self:       flowcell.AddressFrom(c.Address),
		up:         up,
		clock:      newRealClock(),
		virtual:    v,
		timestamps: c.Timestamps,
		done:       make(chan struct{}),
		reseq:      resequencer.New[*gstack.PacketBuffer](c.Resequencer),
	}
	if v != nil {
		in.clock = v.clock
		close(in.done)
	}
	in.timer = in.clock.AfterFunc(time.Hour, in.expire)
	in.timer.Stop()
	return in
}

// run reads until the device is closed; if it fails for another reason, failed
// is told.
func (in *ingress) run(failed func(error)) {
	defer close(in.done)
	bufs := make([][]byte, ingressBatch)
	sizes := make([]int, ingressBatch)
	for i := range bufs {
		bufs[i] = make([]byte, in.dev.MTU())
	}
	for {
		n, err := in.dev.Read(bufs, sizes, 0)
		in.mu.Lock()
		now := in.clock.Now()
		for i := range n {
			in.take(bufs[i][:sizes[i]])
		}
		in.push(now)
		in.release(now)
		in.mu.Unlock()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				failed(err)
			}
			return
		}
	}
}

// receive takes a packet that nobody reads from the device.
func (in *ingress) receive(b []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.clock.Now()
	in.take(b)
	in.push(now)
	in.release(now)
}

// take checks one packet of a batch and keeps it for push. A wrong checksum must
// be found here and not by TCP: a sequence number that is noise would spoil the
// order of what follows.
func (in *ingress) take(b []byte) {
	in.stats.Packets++
	in.segments = append(in.segments, flowcell.Packet{})
	pkt := &in.segments[len(in.segments)-1]
	if !in.check(pkt, b) {
		in.segments = in.segments[:len(in.segments)-1]
		return
	}
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{
		Payload: buffer.MakeWithData(b[:pkt.Length]),
	})
	p.RXChecksumValidated = pkt.IsTCP()
	if pkt.Flags&flowcell.FlagSYN != 0 && !in.timestamps {
		stripTimestamps(headers(p))
	}
	in.packets = append(in.packets, p)
}

// push gives the batch to the resequencer.
func (in *ingress) push(now time.Duration) {
	in.ready = in.reseq.PushBatch(in.segments, in.packets, now, in.ready)
	in.segments = in.segments[:0]
	clear(in.packets)
	in.packets = in.packets[:0]
}

// check reads a packet and reports whether it is one to deliver; if not, it has
// been counted.
func (in *ingress) check(pkt *flowcell.Packet, b []byte) bool {
	if err := pkt.Parse(b); err != nil || b[0]>>4 != 4 {
		in.stats.Malformed++
		return false
	}
	b = b[:pkt.Length]
	switch {
	case pkt.Flow.Dst != in.self:
		in.stats.NotForUs++
		return false
	case martian(b):
		in.stats.Martian++
		return false
	case pkt.Flow.Proto == flowcell.ProtoIPIP:
		in.stats.Encapsulated++
		return false
	case !header.IPv4(b).IsChecksumValid() || pkt.IsTCP() && !validTCP(b):
		in.stats.BadChecksum++
		return false
	}
	return true
}

// martian reports whether an IPv4 packet has a source that no packet from a
// network has (RFC 1812 §5.3.7): this-network, loopback, multicast, reserved
// and broadcast.
func martian(b []byte) bool {
	first := b[12]
	return first == 0 || first == 127 || first >= 224
}

// validTCP checks the TCP checksum of an unfragmented packet that Parse has
// accepted.
func validTCP(b []byte) bool {
	ip := header.IPv4(b)
	tcp := header.TCP(ip.Payload())
	payload := tcp.Payload()
	return tcp.IsChecksumValid(
		tcpip.AddrFrom4Slice(ip.SourceAddressSlice()),
		tcpip.AddrFrom4Slice(ip.DestinationAddressSlice()),
		checksum.Checksum(payload, 0), uint16(len(payload)))
}

// expire is the timer's work.
func (in *ingress) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.release(in.clock.Now())
}

// release delivers what is due and sets the timer for what is not. Delivering
// under the lock keeps what the reader and the timer release in order.
func (in *ingress) release(now time.Duration) {
	if in.closed {
		return
	}
	in.ready = in.reseq.Expire(now, in.ready)
	in.deliver()
	if at, ok := in.reseq.NextDeadline(); ok {
		in.timer.Reset(at - now)
	} else {
		in.timer.Stop()
	}
}

// deliver hands up what is ready, segments that continue each other as one.
func (in *ingress) deliver() {
	for i, p := range in.ready {
		in.ready[i] = nil
		if in.merge.add(p) {
			in.stats.Merged++
			continue
		}
		in.handUp(in.merge.start(p))
	}
	in.ready = in.ready[:0]
	in.handUp(in.merge.start(nil))
}

func (in *ingress) handUp(p *gstack.PacketBuffer) {
	if p == nil {
		return
	}
	in.stats.Delivered++
	in.up.deliver(p, p.RXChecksumValidated)
	in.virtual.settle()
}

// close ends the timer and gives up what is held. The device must have been
// closed; the reader has ended when close returns.
func (in *ingress) close() {
	<-in.done
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.timer.Stop()
	in.ready = in.reseq.Flush(in.ready)
	in.deliver()
}

func (in *ingress) snapshot() (IngressStats, resequencer.Stats) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stats, in.reseq.Stats()
}
