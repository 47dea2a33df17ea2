package dataplane

import (
	"time"

	"weft/encap"
	"weft/link"
)

// Headroom is what stands before a packet in a buffer: room for a SuperDevice's header
// and for the outer header.
const Headroom = link.SuperHeadroom + encap.MaxOverhead

// wrap makes a packet ready for the device, as was decided: it lies in buf behind
// encap.MaxOverhead bytes for the outer header. wrap returns what of buf is to be sent;
// nil if the packet is dropped, and counted.
func (e *Egress) wrap(buf []byte, o *Outgoing, now time.Duration) []byte {
	inner, d := buf[encap.MaxOverhead:], &o.decision
	if d.via == nil {
		return inner
	}
	switch {
	case d.marked || d.reports:
		e.stamp(inner, o.pair, *d, now)
	case d.numbered:
		d.number.Stamp(inner)
	}
	e.stats.Encapsulated++
	if e.uplink {
		return inner
	}
	e.id++
	out, err := d.via.encapsulate(buf, o.pair.rack, e.id)
	if err != nil {
		e.stats.Encapsulated--
		e.stats.Malformed++
		return nil
	}
	d.via.packets++
	d.via.bytes += uint64(len(out))
	return out
}
