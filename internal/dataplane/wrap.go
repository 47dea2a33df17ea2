package dataplane

import (
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
)

// Headroom is the space before a packet in a buffer: for a SuperDevice's header and for
// the outer header.
const Headroom = link.SuperHeadroom + encap.MaxOverhead

// wrap makes a packet ready for the device, as was decided: it lies in buf behind
// encap.MaxOverhead bytes for the outer header. wrap returns what of buf is to be sent;
// nil if the packet is dropped, and counted.
func (e *Egress) wrap(buf []byte, o *Outgoing, now time.Duration) []byte {
	inner, d := buf[encap.MaxOverhead:], &o.decision
	if d.via == nil {
		e.conns.count(&o.pkt, nil, 1, uint64(len(inner)), now)
		return inner
	}
	switch {
	case d.marked || d.reports:
		o.lane.informed.stamp(inner, o.pair, *d, now)
	case d.numbered:
		o.number().Stamp(inner)
	}
	if o.below() {
		e.conns.count(&o.pkt, nil, 1, uint64(len(inner)), now)
		e.stats.Encapsulated++
		return inner
	}
	e.id++
	out, err := d.via.encapsulate(buf, o.pair.rack, e.id)
	if err != nil {
		e.stats.Malformed++
		return nil
	}
	e.stats.Encapsulated++
	d.via.packets++
	d.via.bytes += uint64(len(out))
	e.conns.count(&o.pkt, d.via, 1, uint64(len(out)), now)
	return out
}

// encapsulate writes the outer header of a packet to a rack before it, see
// encap.Outer.
func (o *pathOut) encapsulate(buf []byte, to *rack, id uint16) ([]byte, error) {
	out, err := o.header.Encapsulate(buf, id)
	if err == nil && o.head.high != 0 {
		if o.head.put(out, to.tail); to.six {
			encap.EndIn6(out)
		}
	}
	return out, err
}

// batchSize is the most packets that go to a device in one call.
const batchSize = 64

// batch collects packets for a device.
type batch struct {
	e     *Egress
	bufs  [][]byte // one for each packet, Headroom and the longest packet long
	views [][]byte // what of bufs goes to the device
}

func newBatch(e *Egress) batch {
	b := batch{e: e, bufs: make([][]byte, batchSize), views: make([][]byte, 0, batchSize)}
	for i := range b.bufs {
		b.bufs[i] = make([]byte, Headroom+e.longest)
	}
	return b
}

// fill copies the next piece of a packet into the next buffer, wraps it and adds it
// to the batch. The piece lies in buf from start to end; buf is nil if it is dropped,
// and counted. more is false if the rest of the packet cannot be cut.
func (b *batch) fill(o *Outgoing, now time.Duration) (buf []byte, start, end int, more bool) {
	e := b.e
	buf, end = b.bufs[len(b.views)], Headroom
	if o.MSS > 0 {
		n := e.segmenter.Next(buf[Headroom:])
		if n == 0 {
			e.stats.TooLong++
			return nil, 0, 0, false
		}
		end += n
	} else {
		for _, s := range o.Parts {
			end += copy(buf[end:], s)
		}
	}
	if o.pkt.Flags&flowcell.FlagSYN != 0 && e.strips(o) {
		StripTimestamps(buf[Headroom:end])
	}
	out := e.wrap(buf[link.SuperHeadroom:end], o, now)
	if out == nil {
		return nil, 0, 0, true
	}
	start = end - len(out)
	b.views = append(b.views, buf[start-link.SuperHeadroom:end])
	return buf, start, end, true
}

func (b *batch) full() bool { return len(b.views) == len(b.bufs) }

// strips reports whether a SYN loses its timestamps option.
func (e *Egress) strips(o *Outgoing) bool {
	return !e.config.Timestamps && o.pkt.IsTCP()
}

// written counts that the device has taken so many packets of the batch, and empties
// it.
func (b *batch) written(n int) {
	b.e.stats.DeviceDrops += uint64(len(b.views) - n)
	b.e.stats.Packets += uint64(n)
	b.views = b.views[:0]
}
