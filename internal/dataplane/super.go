package dataplane

import (
	"time"

	"weft/gso"
	"weft/link"
)

// superOutlet is a SuperDevice. A super-segment stays whole if all of its segments
// leave as they are, or a program below encapsulates them by the number.
type superOutlet struct {
	batch
	dev   SuperDevice
	head  [link.VnetHeaderLen + MaxHeaders]byte // of a super-segment
	parts [][]byte
}

func newSuperOutlet(e *Egress, dev SuperDevice) *superOutlet {
	return &superOutlet{batch: newBatch(e), dev: dev}
}

func (s *superOutlet) supers() bool           { return s.dev.MaxSuper() > 0 }
func (s *superOutlet) checksum() gso.Checksum { return gso.Partial }
func (s *superOutlet) end(*Outgoing)          {}

func (s *superOutlet) whole(o *Outgoing) bool {
	headers := o.pkt.Length - int(o.pkt.Payload)
	return o.pkt.IsTCP() && !o.narrow && headers <= min(MaxHeaders, len(o.Parts[0])) && o.size <= s.dev.MaxSuper() &&
		(o.below() || o.plain())
}

func (s *superOutlet) add(o *Outgoing, now time.Duration) bool {
	if o.whole {
		s.addWhole(o, now)
		return true
	}
	buf, start, _, more := s.fill(o, now)
	if buf == nil {
		return more
	}
	// The checksum lies in the inner packet, which ends where the outer one ends.
	inner := uint16(Headroom - start)
	var h link.VnetHeader
	if o.Partial {
		h = link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: o.CsumStart + inner, CsumOffset: o.CsumAt}
	}
	h.Put((*[link.VnetHeaderLen]byte)(buf[start-link.VnetHeaderLen:]))
	if s.full() {
		s.flush()
	}
	return true
}

// addWhole writes a super-segment as it is: one write. The payload is not copied.
func (s *superOutlet) addWhole(o *Outgoing, now time.Duration) {
	s.flush() // what came before stays before
	s.e.conns.count(&o.pkt, nil, 1, uint64(o.size), now)
	stats, d := &s.e.stats, &o.decision
	n := o.pkt.Length - int(o.pkt.Payload)
	o.vnet().Put((*[link.VnetHeaderLen]byte)(s.head[:]))
	head := s.head[:link.VnetHeaderLen+copy(s.head[link.VnetHeaderLen:], o.Parts[0][:n])]
	if d.via != nil {
		stats.Encapsulated++
		if d.numbered {
			o.number().Stamp(head[link.VnetHeaderLen:])
		}
	}
	s.parts = append(s.parts[:0], head)
	if rest := o.Parts[0][n:]; len(rest) > 0 {
		s.parts = append(s.parts, rest)
	}
	s.parts = append(s.parts, o.Parts[1:]...)
	if s.e.tap.On() {
		s.e.showParts(append([][]byte{head[link.VnetHeaderLen:]}, s.parts[1:]...), nil)
	}
	if err := s.dev.WriteParts(s.parts); err != nil {
		stats.DeviceDrops++
	} else {
		stats.Packets++
		stats.Supers++
	}
	clear(s.parts)
}

func (s *superOutlet) flush() {
	if len(s.views) > 0 {
		s.written(s.write(s.views))
	}
}

func (s *superOutlet) write(bufs [][]byte) int {
	s.e.show(bufs)
	n, _ := s.dev.WriteSuper(bufs, link.SuperHeadroom)
	return n
}
