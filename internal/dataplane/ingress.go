package dataplane

import (
	"errors"
	"net"
	"sync"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/capture/tap"
	"weft/internal/clock"
	"weft/resequencer"
)

// Ingress takes packets from the network to netstack, or to the kernel. A packet goes
// through these stages, one after the other:
//
//	source   read, a batch at a time         source.go, tunnelsource.go
//	check    is it a packet, and for us      check.go, icmp.go, marks.go
//	order    the resequencer
//	sink     merge and hand over             tokernel.go; netstack's in package stack
//
// One goroutine reads, unless time is virtual. A timer releases packets whose hold has
// ended. Both use the sink, so mu guards the sink and all else that they share. P is the
// sink's packet.
type Ingress[P any] struct {
	// from belongs to the reader. next counts under mu.
	from source
	bufs [][]byte // to fill, the reader's alone between lend and the next lend

	// What follows is set before the reader and the timer start, and not changed
	// afterwards.

	// accepts reports whether a packet that is well formed is for us.
	accepts func(pkt *flowcell.Packet, b []byte) bool
	// relays says that there are switches. Their errors about outer headers are passed
	// on to the inner packets' senders, and CONGA's marks are taken off.
	relays bool
	// probe takes probes, see TakeProbes; nil: they are packets like others.
	probe func(bufs ...[]byte)
	// sample takes samples; nil: they are packets like others.
	sample func(packet []byte)
	// marks takes what packets say of congestion, a batch at a time; nil if nobody
	// wants to know.
	marks func([]arrivedMark)
	// acks takes what packets acknowledge of what this host has sent, a batch at a time;
	// set where flights are.
	acks func([]arrivedAck)
	// flights is told what is acknowledged; nil if nobody wants to know. Without it
	// no mark counts.
	flights *flights
	// narrow takes the MTU to a destination that a switch has reported, rightly; nil if a
	// kernel gets such reports itself.
	narrow func(dst flowcell.Address, mtu int)
	// handover says when a flow needs the ingress no longer; nil if all packets come here.
	handover *handover
	beat     beat // of the reader
	clock    clock.Clock
	still    bool          // no goroutine reads: the time is virtual
	tap      *tap.Tap      // where who captures sees packets; nil: nobody can
	done     chan struct{} // closed when the reader has ended

	mu sync.Mutex // guards all that follows
	to Sink[P]
	// arrived is the packet that round takes in: one on its stack would be allocated for each,
	// since a Sink is told where it is.
	arrived Arrived
	reseq   *resequencer.Buffer[P]
	// datagrams is that of datagrams that are numbered; nil without handover.
	datagrams *resequencer.Buffer[P]
	segments  []flowcell.Packet // of the batch, for the resequencer
	packets   []P
	marked    []arrivedMark
	acked     []arrivedAck
	ready     []P    // to be delivered, in this order
	probed    []byte // a probe, behind room for an outer header
	timer     clock.Timer
	closed    bool
	seen      *seen[P] // nil while nobody captures
	stats     IngressStats
}

// Sink takes packets that are in order. Its ingress calls it with the ingress's lock
// held.
type Sink[P any] interface {
	// Buffer returns the buffer of a slot. The source reads a packet into it without the
	// lock, until Packet, or Buffer again, is called for that slot.
	Buffer(slot, size int) []byte
	// Packet turns a checked packet into the form that the resequencer keeps. The bytes
	// of a are only lent, unless they are alone in their slot: then the sink may keep the
	// buffer and give the slot another one.
	Packet(pkt *flowcell.Packet, a *Arrived) P
	// Deliver takes packets in their order. It returns how many of them it has merged
	// into the one before. It must not keep ready.
	Deliver(ready []P) (merged int)
}

// lent is the slot of a packet that lies in nobody's buffer.
const lent = -1

// NewIngress returns the ingress of the host whose egress is e, from its Device or
// its Tunnel to a sink. From a Device it takes only packets for the host's own
// address. It tells e what the other ends of connections acknowledge, which MTUs switches
// report, and what samples say. It takes back ICMP errors about packets that e refuses.
// Start makes it read.
func NewIngress[P any](e *Egress, to Sink[P]) *Ingress[P] {
	c := &e.config
	in := newIngress(newSource(c.Device, e.paths.tunnel), to, c.Resequencer, e.clock)
	in.relays = c.Tunnel == nil
	in.flights, in.acks, in.narrow = e.flights, e.receiveAcks, e.narrow
	in.flights.on.Store(true)
	if in.relays {
		in.marks = e.receiveMarks
	}
	in.accepts = c.accepts()
	in.still = c.Clock != nil
	if c.Samples && c.Tunnel == nil {
		in.sample = e.sample().receive
	}
	e.Refuse(newRefusals(in.clock, in.Receive).add)
	return in
}

// TakeProbes gives probes of paths, and ICMP errors about probes that were too long for a
// link, to take. Each packet lies in its buffer behind encap.MaxOverhead bytes. take may
// write to the buffer, and keeps nothing of it. It is called with the ingress's lock held.
// TakeProbes must be called before Start.
func (in *Ingress[P]) TakeProbes(take func(bufs ...[]byte)) {
	in.probe, in.probed = take, make([]byte, encap.MaxOverhead, 1<<11)
}

// takeProbe hands on a probe, or an error about one.
func (in *Ingress[P]) takeProbe(packet []byte) {
	in.stats.Probes++
	in.probed = append(in.probed[:encap.MaxOverhead], packet...)
	in.probe(in.probed)
}

// Start makes a goroutine read until the source is closed. If the source fails for
// another reason, it calls failed. In virtual time nobody reads: see Receive.
func (in *Ingress[P]) Start(failed func(error)) {
	if in.still {
		close(in.done)
		return
	}
	go in.run(failed)
}

// newIngress returns one that has a timer and does not read yet.
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

// round waits for a batch and takes it in. The reader calls it. It does not wait if
// the source does not.
func (in *Ingress[P]) round() error {
	in.beat.before()
	err := in.beat.after(in.from.read(in.bufs))
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.clock.Now()
	in.watch(now)
	for {
		var ok bool
		if in.arrived, ok = in.from.next(); !ok {
			break
		}
		in.take(&in.arrived, now)
	}
	in.arrived = Arrived{}
	in.push(now)
	in.release(now, !in.from.filled())
	if in.handover != nil {
		in.handover.shed(!in.from.filled() || in.from.waited(), now)
	}
	in.lend() // for the next batch, while we have the lock
	return err
}

// lend makes the sink give the reader a buffer for each slot.
func (in *Ingress[P]) lend() {
	_, size := in.from.batch()
	for i := range in.bufs {
		in.bufs[i] = in.to.Buffer(i, size)
	}
}

// Receive takes a packet that was not read from the source. The bytes are copied.
func (in *Ingress[P]) Receive(b []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.clock.Now()
	in.watch(now)
	in.take(&Arrived{Bytes: b, Slot: lent}, now)
	in.push(now)
	in.release(now, false)
}

// take checks one packet of a batch and keeps it for push.
func (in *Ingress[P]) take(a *Arrived, now time.Duration) {
	in.stats.Packets++
	if in.seen != nil {
		in.seen.arrived(a, now)
	}
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
		if a.numbered || a.Bytes[0]>>4 == 4 { // else all segments have the number of the first
			pkt.MoreSegments = uint8(min((int(pkt.Payload)-1)/a.MSS, flowcell.MaxIndex))
		}
		in.stats.Supers++
	}
	switch {
	case in.handover == nil:
	case pkt.IsTCP():
		if !a.rest {
			in.handover.arrived(&pkt.Flow, now)
		}
	case pkt.Flow.Proto == flowcell.ProtoUDP && !pkt.Fragment:
		in.handover.arrivedDatagram(pkt, a.rest, now)
		in.segments = in.segments[:len(in.segments)-1]
		in.ready = in.datagrams.Push(pkt, in.packet(pkt, a, now), now, in.ready)
		return
	}
	in.packets = append(in.packets, in.packet(pkt, a, now))
}

// packet turns a checked packet into the sink's form.
func (in *Ingress[P]) packet(pkt *flowcell.Packet, a *Arrived, now time.Duration) P {
	p := in.to.Packet(pkt, a)
	if in.seen != nil {
		in.seen.keep(p, pkt, now)
	}
	return p
}

// Close stops the timer and delivers the held packets. The source must have been closed
// before. The reader has ended when Close returns.
func (in *Ingress[P]) Close() {
	<-in.done
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.timer.Stop()
	in.ready = in.reseq.Flush(in.ready)
	if in.datagrams != nil {
		in.ready = in.datagrams.Flush(in.ready)
	}
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
