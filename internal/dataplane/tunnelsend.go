package dataplane

import (
	"errors"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/gso"
	"weft/link"
)

// tunnelOutlet is a Tunnel: it puts each piece into a datagram. Segments of a
// super-segment that take one path leave in one call.
type tunnelOutlet struct {
	*tunnel
	e      *Egress
	cuts   []datagram
	parts  [][]byte // of all cuts
	train  [][]byte // parts of those that go together
	acks   ackTrain
	heads  []byte    // headers of all cuts, or all of them where they must be in one piece
	looked time.Time // at the time of day
	day    time.Time // as it was then
	set    time.Time // the time of day after it was set ahead for the last time; zero: never
}

// datagram is a segment on its way.
type datagram struct {
	via      *pathOut
	from, to int // of its parts
	size     int
	sent     bool
}

// maxSealed is the most bytes that a super-segment takes in datagrams, headers included.
// What does not fit, as with an MSS below some 90 bytes, is dropped and counted.
const maxSealed = 2 * SuperBuffer

func newTunnelOutlet(e *Egress, t *tunnel) *tunnelOutlet {
	return &tunnelOutlet{tunnel: t, e: e, heads: make([]byte, 0, maxSealed), acks: ackTrain{bytes: make([]byte, 0, maxACKs*maxACK)}}
}

func (t *tunnelOutlet) supers() bool         { return true }
func (t *tunnelOutlet) whole(*Outgoing) bool { return false }
func (t *tunnelOutlet) flush()               { t.sendACKs() }
func (t *tunnelOutlet) write([][]byte) int   { return 0 } // there are no probes

func (t *tunnelOutlet) checksum() gso.Checksum {
	if t.partial {
		return gso.Partial
	}
	return gso.Complete
}

// add makes a datagram of the next piece.
func (t *tunnelOutlet) add(o *Outgoing, _ time.Duration) bool {
	if len(t.cuts) == 0 {
		t.follow(o.pair.peer, time.Now())
	}
	ok := false
	if o.MSS == 0 {
		ok = t.single(o)
	} else {
		ok = t.next(o)
	}
	if !ok {
		t.e.stats.Malformed++
	}
	return ok
}

// end sends the datagrams of a packet, path by path. Acknowledgements wait for the end of the
// batch, or for another packet, which they may not stay behind.
func (t *tunnelOutlet) end(o *Outgoing) {
	if len(t.cuts) == 0 {
		return
	}
	t.e.showParts(o.Parts, t.cuts[0].via)
	if !t.gather(o) {
		t.sendACKs()
		t.send(o)
	}
	clear(t.train)
	clear(t.parts)
	t.cuts, t.parts, t.heads = t.cuts[:0], t.parts[:0], t.heads[:0]
}

// send sends the datagrams of a packet.
func (t *tunnelOutlet) send(o *Outgoing) {
	stats, p, tos := &t.e.stats, o.pair.peer, encap.UDPTOS(o.Parts[0])
	stats.Encapsulated += uint64(len(t.cuts))
	if len(t.cuts) > 1 {
		stats.Supers++
	}
	for i := range t.cuts {
		first := &t.cuts[i]
		if first.sent {
			continue
		}
		packets, bytes := t.together(i)
		t.count(o, first.via, packets, bytes)
		if err := t.Underlay.Send(first.via.index, p.to, tos, t.train, first.size); err != nil {
			stats.DeviceDrops += packets
			if errors.Is(err, link.ErrMessageSize) {
				t.narrow(o, first.size)
			}
		} else {
			stats.Packets += packets
		}
	}
}

// count counts datagrams of a packet that go by a path.
func (t *tunnelOutlet) count(o *Outgoing, via *pathOut, packets, bytes uint64) {
	via.packets += packets
	via.bytes += bytes
	if t.e.conns != nil { // else the clock is not read
		t.e.conns.count(&o.pkt, via, packets, bytes, t.e.now())
	}
}

// together makes a train of all datagrams, from the i-th on, that take the i-th's path.
// It counts them and their bytes.
func (t *tunnelOutlet) together(i int) (packets, bytes uint64) {
	t.train = t.train[:0]
	via := t.cuts[i].via
	for j := i; j < len(t.cuts); j++ {
		if d := &t.cuts[j]; d.via == via {
			for _, part := range t.parts[d.from:d.to] {
				t.train = join(t.train, part)
			}
			d.sent = true
			packets++
			bytes += uint64(d.size)
		}
	}
	return packets, bytes
}

// join appends a part to a train, or makes the train's last part longer where the new one lies
// right behind it in memory: the kernel's work grows with the number of parts. Sealed datagrams
// lie so.
func join(train [][]byte, part []byte) [][]byte {
	if len(train) > 0 && len(part) > 0 {
		last := &train[len(train)-1]
		if n := len(*last); n > 0 && cap(*last) >= n+len(part) && &(*last)[:n+1][n] == &part[0] {
			*last = (*last)[:n+len(part)]
			return train
		}
	}
	return append(train, part)
}

// plateaus are MTUs that networks have (RFC 1191 §7.1), and those of other tunnels.
var plateaus = []int{32000, 17914, 8166, 4352, 2002, 1492, 1400, 1280, 1006, 576}

// narrow handles a datagram that the kernel has refused, because a router between the
// ends has reported a smaller MTU than the tunnel is configured with. From now on TCP is
// cut to the next smaller plateau, until tries show that the MTU is larger again. Senders
// of other packets get the error that a router would send. The kernel does not say how
// much smaller the MTU is, so it may take several tries.
func (t *tunnelOutlet) narrow(o *Outgoing, size int) {
	e, p, outer := t.e, o.pair.peer, 20+8
	if p.to.Addr().Is6() {
		outer = 40 + 8
	}
	for _, mtu := range plateaus {
		if mtu >= outer+size {
			continue
		}
		mtu -= outer + t.overheadTo(p)
		if o.pkt.IsTCP() {
			e.narrows.report(o.pkt.Flow.Dst, mtu, e.clock.Now())
		} else {
			e.tooLong(o.Parts[0], mtu, o.pkt.Flow.Dst.IP())
		}
		return
	}
}

// follow makes a peer's numbers follow the time of day when that is set ahead. They
// do not follow it otherwise: receivers remember a few thousand numbers, and what is
// on its way by a slow path would be too old. now is of the monotonic clock.
func (t *tunnelOutlet) follow(p *peer, now time.Time) {
	if p.sealer == nil {
		return
	}
	if passed := now.Sub(t.looked); t.looked.IsZero() || passed >= time.Second {
		day := t.Time().Round(0)
		if !t.looked.IsZero() && day.Sub(t.day)-passed > time.Second {
			t.set = day
		}
		t.looked, t.day = now, day
	}
	if !t.set.IsZero() {
		p.sealer.Follow(t.set)
	}
}

// inOnePiece reports whether a datagram to p must lie in one piece of memory: a MAC
// covers all of it, and a checksum must be computed.
func (t *tunnelOutlet) inOnePiece(p *peer) bool { return p.sealer != nil || !t.partial }

// room returns n more bytes of heads; nil if there are none. What is behind them is free:
// a Sealer uses it for a moment.
func (t *tunnelOutlet) room(n int) []byte {
	at := len(t.heads)
	if at+n > cap(t.heads) {
		return nil
	}
	t.heads = t.heads[:at+n]
	return t.heads[at : at+n]
}

// header writes what stands before an inner packet into b. b is all of the datagram
// if that lies in one piece.
func (t *tunnelOutlet) header(b []byte, p *peer, d *decision, partial bool) bool {
	h := encap.UDPHeader{Path: uint8(d.via.index), Partial: partial, Number: d.sequence}
	if d.numbered {
		h.Flowcell = uint16(d.number)
	}
	if p.sealer != nil {
		return p.sealer.Seal(b, h) == nil
	}
	encap.PutUDP(b, h)
	return true
}

func (t *tunnelOutlet) overheadTo(p *peer) int {
	if p.sealer != nil {
		return p.sealer.Overhead()
	}
	return encap.UDPOverhead
}

// single makes a datagram of a packet. A SYN loses its timestamps unless it may keep
// them.
func (t *tunnelOutlet) single(o *Outgoing) bool {
	p, d := o.pair.peer, &o.decision
	over := t.overheadTo(p)
	strip := o.pkt.Flags&flowcell.FlagSYN != 0 && t.e.strips(o)
	partial := o.Partial && t.partial
	if !t.inOnePiece(p) && !strip {
		b := t.room(over)
		t.parts = append(append(t.parts, b), o.Parts...)
		t.cuts = append(t.cuts, datagram{via: d.via, to: len(t.parts), size: over + o.size})
		return t.header(b, p, d, partial)
	}
	b := t.room(over + o.size)
	if b == nil {
		return false
	}
	n := over
	for _, s := range o.Parts {
		n += copy(b[n:], s)
	}
	if o.Partial && !partial {
		complete(b[over:], int(o.CsumStart), int(o.CsumAt))
	}
	if strip {
		StripTimestamps(b[over:])
	}
	t.parts = append(t.parts, b)
	t.cuts = append(t.cuts, datagram{via: d.via, to: 1, size: len(b)})
	return t.header(b, p, d, partial)
}

// next makes a datagram of the next segment of a super-segment.
func (t *tunnelOutlet) next(o *Outgoing) bool {
	p, d, cut := o.pair.peer, &o.decision, &t.e.segmenter
	over := t.overheadTo(p)
	from := len(t.parts)
	size := 0
	var b []byte
	if t.inOnePiece(p) {
		size = over + cut.NextLen()
		if b = t.room(size); b == nil || cut.Next(b[over:]) == 0 {
			return false
		}
		t.parts = append(t.parts, b)
	} else {
		head := cut.HeaderLen()
		if b = t.room(over + head); b == nil {
			return false
		}
		cut.Header(b[over:])
		var payload int
		t.parts, payload = cut.Payload(append(t.parts, b))
		size = len(b) + payload
	}
	t.cuts = append(t.cuts, datagram{via: d.via, from: from, to: len(t.parts), size: size})
	return t.header(b, p, d, t.partial)
}
