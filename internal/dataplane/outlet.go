package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/gso"
	"weft/link"
)

// outlet is the end of egress: a Device (plain.go), a SuperDevice (super.go) or a
// Tunnel (tunnelsend.go). It belongs to its Egress and is called with its lock held.
type outlet interface {
	// supers reports whether super-segments may be handed to the Egress, now.
	supers() bool
	// whole reports whether it takes a super-segment in one piece.
	whole(o *Outgoing) bool
	// checksum says what is left of the checksums of segments that are cut for it.
	checksum() gso.Checksum
	// add takes the next piece of a packet, as o.decision says. It is false if the rest
	// of the packet is dropped, and counted.
	add(o *Outgoing, now time.Duration) bool
	// end is called behind the last piece of each packet.
	end(o *Outgoing)
	// flush writes what was added and not written.
	flush()
	// write writes packets that are ready and lie behind link.SuperHeadroom, and returns
	// how many were taken.
	write(bufs [][]byte) int
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

// fill copies the next piece of a packet into the next buffer and wraps it. The piece
// lies in buf from start to end; buf is nil if it is dropped, and counted. more is
// false if the rest of the packet cannot be cut.
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
	return buf, end - len(out), end, true
}

// put adds a piece that fill has made; it reports whether the batch is full.
func (b *batch) put(buf []byte, start, end int) (full bool) {
	b.views = append(b.views, buf[start-link.SuperHeadroom:end])
	return len(b.views) == batchSize
}

// strips reports whether a SYN loses its timestamps option.
func (e *Egress) strips(o *Outgoing) bool {
	return !e.config.Timestamps && o.pkt.IsTCP() && o.Parts[0][0]>>4 == 4
}

// written counts that the device has taken so many packets of the batch, and empties
// it.
func (b *batch) written(n int) {
	b.e.stats.DeviceDrops += uint64(len(b.views) - n)
	b.e.stats.Packets += uint64(n)
	b.views = b.views[:0]
}
