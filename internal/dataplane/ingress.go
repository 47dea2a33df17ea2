package dataplane

import (
	"errors"
	"net"
	"sync"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/checksum"
	"weft/internal/clock"
	"weft/resequencer"
)

// Ingress takes packets from a source to a sink: check, resequence, deliver.
// One goroutine reads, unless time is virtual; a timer releases what has waited
// too long. Both use the sink, so it is behind mu like all that they share. P is
// the sink's packet.
type Ingress[P any] struct {
	// from is the reader's alone; its counters are kept by next, under mu.
	from source
	bufs [][]byte // to fill, the reader's alone between lend and the next lend

	// Set before the reader and the timer start, and not changed afterwards.

	// accepts is asked whether a packet is for us once it is known to be one.
	accepts func(pkt *flowcell.Packet, b []byte) bool
	// relays says that there are switches: their errors about outer headers go to
	// whom they concern, and marks that are for them are taken off.
	relays bool
	// probe takes probes, which it may write to; nil: they are packets like others.
	probe func(packet []byte)
	// tooLong takes ICMP errors about probes that were too long for a link; false if one
	// is about something else.
	tooLong func(packet []byte) bool
	// sample takes samples alike.
	sample func(packet []byte)
	// marks takes what packets say of congestion, a batch at a time; nil if nobody
	// wants to know.
	marks func([]arrivedMark)
	// flights is told what is acknowledged; nil if nobody wants to know. Without it
	// no mark counts.
	flights *flights
	// narrow takes what a switch reports, rightly, of the MTU to a destination; nil if
	// the packets of those who are to know are not looked at here, but by a kernel.
	narrow func(dst flowcell.Address, mtu int)
	beat   beat // of the reader
	clock  clock.Clock
	still  bool          // no goroutine reads: the time is virtual
	done   chan struct{} // closed when the reader has ended

	mu       sync.Mutex // guards all that follows
	to       Sink[P]
	reseq    *resequencer.Buffer[P]
	segments []flowcell.Packet // of the batch, for the resequencer
	packets  []P
	marked   []arrivedMark
	ready    []P // to be delivered, in this order
	timer    clock.Timer
	closed   bool
	stats    IngressStats
}

// Sink takes packets that are in order. It is called under the lock of the ingress
// that owns it.
type Sink[P any] interface {
	// Buffer returns the buffer of a slot, into which the source reads a packet without
	// the lock, until Packet is called for that slot, or Buffer again.
	Buffer(slot, size int) []byte
	// Packet makes what the resequencer keeps of a packet that was checked. The bytes
	// of a are only lent, unless they are alone in their slot: then the sink may keep
	// the buffer and give another one to the slot.
	Packet(pkt *flowcell.Packet, a *Arrived) P
	// Deliver takes packets in their order. It returns how many it has merged into the
	// one before. ready is not kept.
	Deliver(ready []P) (merged int)
}

// lent is the slot of a packet that lies in nobody's buffer.
const lent = -1

// NewIngress returns the ingress of the host whose egress is e: from its Device, or
// its Tunnel, to a sink. Of a Device it takes what is for the host's own address, and
// what the other end of a connection acknowledges, or complains about, is told to e.
// Start makes it read.
func NewIngress[P any](e *Egress, to Sink[P]) *Ingress[P] {
	c := &e.config
	in := newIngress(newSource(c.Device, e.paths.tunnel), to, c.Resequencer, clock.Or(c.Clock))
	in.relays = c.Tunnel == nil
	in.flights, in.narrow = e.flights, e.narrow
	in.flights.on.Store(true)
	if e.informed != nil {
		in.marks = e.receiveMarks
	}
	self := flowcell.AddressFrom(c.Address)
	in.accepts = func(pkt *flowcell.Packet, _ []byte) bool { return pkt.Flow.Dst == self }
	in.still = c.Clock != nil
	return in
}

// TakeProbes has probes of paths given to probe, which may write to them, and ICMP
// errors to tooLong, which says whether one is about a probe. Both are called with the
// ingress's lock held. It must be called before Start.
func (in *Ingress[P]) TakeProbes(probe func(packet []byte), tooLong func(packet []byte) bool) {
	in.probe, in.tooLong = probe, tooLong
}

// TakeSamples has samples given to sample, as TakeProbes does.
func (in *Ingress[P]) TakeSamples(sample func(packet []byte)) { in.sample = sample }

// Clock is the one that an ingress lives by.
func (in *Ingress[P]) Clock() clock.Clock { return in.clock }

// Start has a goroutine read until the source is closed; if it fails for another
// reason, failed is told. Where the time is virtual nobody reads: see Receive.
func (in *Ingress[P]) Start(failed func(error)) {
	if in.still {
		close(in.done)
		return
	}
	go in.run(failed)
}

// newIngress returns one whose timer runs; run makes it read.
func newIngress[P any](from source, to Sink[P], c resequencer.Config, clock clock.Clock) *Ingress[P] {
	in := &Ingress[P]{
		from:  from,
		to:    to,
		clock: clock,
		done:  make(chan struct{}),
		reseq: resequencer.New[P](c),
	}
	in.timer = in.clock.AfterFunc(time.Hour, in.expire)
	in.timer.Stop()
	return in
}

// run reads until the source is closed; if it fails for another reason, failed
// is told.
func (in *Ingress[P]) run(failed func(error)) {
	defer close(in.done)
	in.begin()
	for {
		if err := in.round(); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				failed(err)
			}
			return
		}
	}
}

// begin prepares for the first round.
func (in *Ingress[P]) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, _ := in.from.batch()
	in.bufs = make([][]byte, n)
	in.lend()
}

// round waits for a batch and takes it in. It is the reader's, and does not wait where
// the source does not.
func (in *Ingress[P]) round() error {
	in.beat.before()
	err := in.beat.after(in.from.read(in.bufs))
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.clock.Now()
	for a, ok := in.from.next(); ok; a, ok = in.from.next() {
		in.take(&a)
	}
	in.push(now)
	in.release(now)
	in.lend() // for the next batch, while we have the lock
	return err
}

// lend has the sink give the reader a buffer for each slot.
func (in *Ingress[P]) lend() {
	_, size := in.from.batch()
	for i := range in.bufs {
		in.bufs[i] = in.to.Buffer(i, size)
	}
}

// Receive takes a packet that nobody reads. The bytes are copied.
func (in *Ingress[P]) Receive(b []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.clock.Now()
	in.take(&Arrived{Bytes: b, Slot: lent})
	in.push(now)
	in.release(now)
}

// take checks one packet of a batch and keeps it for push.
func (in *Ingress[P]) take(a *Arrived) {
	in.stats.Packets++
	in.segments = append(in.segments, flowcell.Packet{})
	pkt := &in.segments[len(in.segments)-1]
	if !in.check(pkt, a) {
		in.segments = in.segments[:len(in.segments)-1]
		return
	}
	if a.numbered {
		pkt.ID = uint16(a.number)
		if a.sequence != 0 && !pkt.IsTCP() { // to the resequencer, a byte of a stream
			pkt.Seq, pkt.Payload = a.sequence, 1
		}
	}
	if a.MSS > 0 && int(pkt.Payload) > a.MSS {
		pkt.MoreSegments = uint8(min((int(pkt.Payload)-1)/a.MSS, flowcell.MaxIndex))
		in.stats.Supers++
	}
	in.packets = append(in.packets, in.to.Packet(pkt, a))
}

// check reads a packet and reports whether it is one to deliver; if not, it has
// been counted. A wrong checksum must be found here and not by TCP: a sequence
// number that is noise would spoil the order of what follows.
func (in *Ingress[P]) check(pkt *flowcell.Packet, a *Arrived) bool {
	if err := pkt.Parse(a.Bytes); err != nil {
		in.stats.Malformed++
		return false
	}
	a.Bytes = a.Bytes[:pkt.Length]
	switch {
	case !in.accepts(pkt, a.Bytes):
		in.stats.NotForUs++
		return false
	case in.probe != nil && encap.IsProbe(a.Bytes):
		in.stats.Probes++
		in.probe(a.Bytes)
		return false
	case in.sample != nil && encap.IsSample(a.Bytes):
		in.stats.Samples++
		in.sample(a.Bytes)
		return false
	case martian(a.Bytes):
		in.stats.Martian++
		return false
	case pkt.Flow.Proto == flowcell.ProtoIPIP:
		in.stats.Encapsulated++
		return false
	case !validIP(a.Bytes) || pkt.IsTCP() && !a.verified && !validTCP(a.Bytes):
		in.stats.BadChecksum++
		return false
	case in.tooLong != nil && pkt.Flow.Proto == flowcell.ProtoICMP && in.tooLong(a.Bytes):
		in.stats.Probes++
		return false
	case pkt.Flow.Proto == flowcell.ProtoICMP && in.relays:
		return in.relay(pkt, a)
	case pkt.Flow.Proto == flowcell.ProtoICMP && in.narrow != nil:
		return in.concerns(pkt, a.Bytes)
	}
	proven := false
	if in.flights != nil && pkt.IsTCP() {
		if ack, ok := ackOf(pkt, a.Bytes); ok {
			proven = in.flights.acknowledged(&pkt.Flow, ack)
		}
	}
	if in.relays {
		in.unmark(pkt, a.Bytes, proven)
	}
	return true
}

// push gives the batch to the resequencer.
func (in *Ingress[P]) push(now time.Duration) {
	if len(in.marked) > 0 {
		in.marks(in.marked)
		in.marked = in.marked[:0]
	}
	in.ready = in.reseq.PushBatch(in.segments, in.packets, now, in.ready)
	in.segments = in.segments[:0]
	clear(in.packets)
	in.packets = in.packets[:0]
}

// martian reports whether a packet has a source that none from a network has
// (RFC 1812 §5.3.7): this-network, loopback, multicast, reserved and broadcast.
func martian(b []byte) bool {
	if b[0]>>4 == 6 {
		return b[8] == 0xff || [16]byte(b[8:24]) == [16]byte{} || [16]byte(b[8:24]) == [16]byte{15: 1}
	}
	first := b[12]
	return first == 0 || first == 127 || first >= 224
}

// validIP checks the checksum of an IPv4 header; IPv6 has none.
func validIP(b []byte) bool {
	return b[0]>>4 == 6 || checksum.Fold(checksum.Sum(b[:int(b[0]&0xf)*4], 0)) == 0xffff
}

// validTCP checks the TCP checksum of an unfragmented packet that Parse has
// accepted.
func validTCP(b []byte) bool {
	addresses := b[12:20]
	if b[0]>>4 == 6 {
		addresses = b[8:40]
	}
	segment := b[transportAt(b):]
	pseudo := checksum.Sum(addresses, flowcell.ProtoTCP+uint64(len(segment)))
	return checksum.Fold(checksum.Sum(segment, pseudo)) == 0xffff
}

// transportAt is where the transport header is in a packet that Parse has
// accepted and that is no fragment.
func transportAt(b []byte) int {
	if b[0]>>4 == 4 {
		return int(b[0]&0xf) * 4
	}
	next, at := b[6], 40
	for {
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			next, at = b[at], at+8+8*int(b[at+1])
		case 44: // an atomic fragment
			next, at = b[at], at+8
		default:
			return at
		}
	}
}

// expire is the timer's work.
func (in *Ingress[P]) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.release(in.clock.Now())
}

// release delivers what is due and sets the timer for what is not. Delivering
// under the lock keeps what the reader and the timer release in order.
func (in *Ingress[P]) release(now time.Duration) {
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

func (in *Ingress[P]) deliver() {
	if len(in.ready) == 0 {
		return
	}
	merged := in.to.Deliver(in.ready)
	in.stats.Merged += uint64(merged)
	in.stats.Delivered += uint64(len(in.ready) - merged)
	clear(in.ready)
	in.ready = in.ready[:0]
}

// Close ends the timer and delivers what is held. The source must have been
// closed; the reader has ended when Close returns.
func (in *Ingress[P]) Close() {
	<-in.done
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.timer.Stop()
	in.ready = in.reseq.Flush(in.ready)
	in.deliver()
}

// Stats returns the counters.
func (in *Ingress[P]) Stats() (s IngressStats, r resequencer.Stats, t TunnelStats) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if from, ok := in.from.(*tunnelSource); ok {
		t = from.stats
	}
	return in.stats, in.reseq.Stats(), t
}
