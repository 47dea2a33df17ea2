package dataplane

import (
	"errors"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/gso"
	"weft/link"
)

// tunnelSender puts packets into datagrams. Segments of a super-segment that
// take one path leave in one call.
type tunnelSender struct {
	*tunnel
	segmenter gso.Segmenter
	cuts      []datagram
	parts     [][]byte  // of all cuts
	train     [][]byte  // parts of those that go together
	heads     []byte    // headers of all cuts, or all of them where they must be in one piece
	looked    time.Time // at the time of day
	day       time.Time // as it was then
	set       time.Time // the time of day after it was set ahead for the last time; zero: never
}

// datagram is a segment on its way.
type datagram struct {
	via      *pathOut
	from, to int // of its parts
	size     int
	sent     bool
}

// maxSealed is the bytes of a super-segment in datagrams, at most: of each MSS
// that makes sense, headers included.
const maxSealed = 2 * SuperBuffer

func newTunnelSender(t *tunnel) *tunnelSender {
	return &tunnelSender{tunnel: t, heads: make([]byte, maxSealed)}
}

// tunnel sends a packet, cut into segments if it is a super-segment, each in a
// datagram of its own.
func (e *Egress) sendTunnel(o *Outgoing, now time.Duration) {
	t := e.tunnel
	var pkt flowcell.Packet
	if err := pkt.ParseHeaders(o.Parts[0], o.size); err != nil || o.MSS > 0 && pkt.Fragment {
		e.stats.Malformed++
		return
	}
	pair := e.paths.to(pkt.Flow.Dst)
	if pair.peer == nil {
		e.stats.NoPath++
		return
	}
	each := o.MSS > 0 && (o.narrow || e.each(pair, &pkt))
	first, segments := pkt, o.segments(int(pkt.Payload))
	if each {
		first, segments = pkt.Part(0, o.MSS), 1
	}
	c, ok := e.course(pair, &first, int(first.Payload), segments, now)
	if !ok {
		return
	}
	tos := encap.UDPTOS(o.Parts[0])
	t.begin()
	t.follow(pair.peer, time.Now())
	if o.MSS == 0 {
		ok = t.single(o, pair.peer, &pkt, c, e.timestamps)
	} else {
		ok = t.start(o, pair.peer)
		for i := 0; ok && t.segmenter.Left() > 0; i++ {
			switch {
			case i == 0:
			case each:
				part := pkt.Part(i*o.MSS, o.MSS)
				c, ok = e.course(pair, &part, int(part.Payload), 1, now)
			case e.paths.policy.Unit.Numbers():
				c.number++
			case c.numbered:
				c.number = pair.counted()
			}
			ok = ok && t.next(pair.peer, c)
		}
	}
	if !ok {
		e.stats.Malformed++
		return
	}
	e.stats.Encapsulated += uint64(len(t.cuts))
	if len(t.cuts) > 1 {
		e.stats.Supers++
	}
	e.sendTrains(o, &pkt, pair.peer, tos)
}

// sendTrains sends what has been cut of a packet, path by path.
func (e *Egress) sendTrains(o *Outgoing, pkt *flowcell.Packet, p *peer, tos byte) {
	t := e.tunnel
	for i := range t.cuts {
		first := &t.cuts[i]
		if first.sent {
			continue
		}
		t.train = t.train[:0]
		packets, bytes := uint64(0), uint64(0)
		for j := i; j < len(t.cuts); j++ {
			if d := &t.cuts[j]; d.via == first.via {
				t.train = append(t.train, t.parts[d.from:d.to]...)
				d.sent = true
				packets++
				bytes += uint64(d.size)
			}
		}
		first.via.packets += packets
		first.via.bytes += bytes
		if err := t.Underlay.Send(first.via.index, p.to, tos, t.train, first.size); err != nil {
			e.stats.DeviceDrops += packets
			if errors.Is(err, link.ErrMessageSize) {
				e.narrowTunnel(o, pkt, p, first.size)
			}
		} else {
			e.stats.Packets += packets
		}
	}
	clear(t.train)
	clear(t.parts)
}

// plateaus are MTUs that networks have (RFC 1191 §7.1), and those of other tunnels.
var plateaus = []int{32000, 17914, 8166, 4352, 2002, 1492, 1400, 1280, 1006, 576}

// narrowTunnel deals with a datagram that the kernel has refused, since the network between
// the ends has a smaller MTU than the tunnel is configured with, by a router's word. TCP
// is cut to the next smaller size from now on, until tries show that the network is
// wider again; others are told as a router would tell them. The kernel does not say how
// much smaller: it may take some tries.
func (e *Egress) narrowTunnel(o *Outgoing, pkt *flowcell.Packet, p *peer, size int) {
	outer := 20 + 8
	if p.from.Is6() {
		outer = 40 + 8
	}
	for _, mtu := range plateaus {
		if mtu >= outer+size {
			continue
		}
		mtu -= outer + e.tunnel.overheadTo(p)
		if pkt.IsTCP() {
			e.narrows.report(pkt.Flow.Dst, mtu, e.clock.Now())
			return
		}
		e.tooLong(o.Parts[0], mtu, pkt.Flow.Dst.IP())
		return
	}
}

func (t *tunnelSender) begin() {
	t.cuts, t.parts, t.heads = t.cuts[:0], t.parts[:0], t.heads[:0]
}

// follow has a peer's numbers follow the time of day when that is set ahead. That time
// passes is no reason: what is on its way by a slow path would be too old, since
// receivers remember a few thousand numbers. now is of the monotonic clock.
func (t *tunnelSender) follow(p *peer, now time.Time) {
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

// whole reports whether datagrams to p must be in one piece: a MAC covers all,
// and a checksum must be computed.
func (t *tunnelSender) whole(p *peer) bool { return p.sealer != nil || !t.partial }

// room returns n bytes more of heads, nil if there are none.
func (t *tunnelSender) room(n int) []byte {
	at := len(t.heads)
	if at+n > cap(t.heads) {
		return nil
	}
	t.heads = t.heads[:at+n]
	return t.heads[at : at+n : at+n]
}

// header writes what goes before an inner packet into b, all of the datagram if
// that is whole.
func (t *tunnelSender) header(b []byte, p *peer, c decision, partial bool) bool {
	h := encap.UDPHeader{Path: uint8(c.via.index), Partial: partial, Number: c.sequence}
	if c.numbered {
		h.Flowcell = uint16(c.number)
	}
	if p.sealer != nil {
		return p.sealer.Seal(b, h) == nil
	}
	encap.PutUDP(b, h)
	return true
}

func (t *tunnelSender) overheadTo(p *peer) int {
	if p.sealer != nil {
		return encap.UDPSealedOverhead
	}
	return encap.UDPOverhead
}

// single makes a datagram of a packet. SYNs lose their timestamps unless they
// may keep them.
func (t *tunnelSender) single(o *Outgoing, p *peer, pkt *flowcell.Packet, c decision, timestamps bool) bool {
	over := t.overheadTo(p)
	strip := pkt.Flags&flowcell.FlagSYN != 0 && !timestamps && o.Parts[0][0]>>4 == 4
	partial := o.Partial && t.partial
	if !t.whole(p) && !strip {
		b := t.room(over)
		t.parts = append(append(t.parts, b), o.Parts...)
		t.cuts = append(t.cuts, datagram{via: c.via, to: len(t.parts), size: over + o.size})
		return t.header(b, p, c, partial)
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
	t.cuts = append(t.cuts, datagram{via: c.via, to: 1, size: len(b)})
	return t.header(b, p, c, partial)
}

// start begins to cut a super-segment for p.
func (t *tunnelSender) start(o *Outgoing, p *peer) bool {
	checksum := gso.Partial
	if !t.partial {
		checksum = gso.Complete
	}
	return t.segmenter.Start(o.Parts, o.MSS, checksum) == nil
}

// next makes a datagram of the next segment.
func (t *tunnelSender) next(p *peer, c decision) bool {
	over := t.overheadTo(p)
	from := len(t.parts)
	size := 0
	var b []byte
	if t.whole(p) {
		size = over + t.segmenter.NextLen()
		if b = t.room(size); b == nil || t.segmenter.Next(b[over:]) == 0 {
			return false
		}
		t.parts = append(t.parts, b)
	} else {
		head := t.segmenter.HeaderLen()
		if b = t.room(over + head); b == nil {
			return false
		}
		t.segmenter.Header(b[over:])
		var payload int
		t.parts, payload = t.segmenter.Payload(append(t.parts, b))
		size = len(b) + payload
	}
	t.cuts = append(t.cuts, datagram{via: c.via, from: from, to: len(t.parts), size: size})
	return t.header(b, p, c, t.partial)
}
