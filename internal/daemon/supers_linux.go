package daemon

import (
	"weft/internal/event"
	"weft/internal/hostprog"
)

// supers is what the daemon knows of super-segments of more than 64 KB.
type supers struct {
	losses    superLosses
	fallbacks uint64
	why       string // there are none any more
	told      string // why there are none, or shorter ones, as was logged
}

func (s *supers) lost() bool { return s.why != "" }

// longSprayer is the part of a program that sends them.
type longSprayer interface {
	Stats() (hostprog.SprayStats, error)
	Supers() (bytes int, why string)
	ShortSupers() error
}

// watchSupers goes back to 64 KB where longer super-segments get lost, until the daemon is
// started again: nobody knows when what breaks them is mended.
func (d *daemon) watchSupers() {
	o, ok := d.spray.(longSprayer)
	if !ok || !d.config.longSupers() || d.supers.lost() {
		return
	}
	st, err := o.Stats()
	if err != nil {
		return
	}
	why := d.supers.losses.look(st.Long.Sent, st.Long.Bytes, st.Long.Again)
	if why == "" {
		return
	}
	if err := o.ShortSupers(); err != nil {
		d.log.Warnf(event.Limited, "super-segments get lost (%s), and the uplink takes no other limit: %v", why, err)
		return
	}
	d.supers.fallbacks++
	d.supers.why, d.place.short = why, true
	d.log.Warnf(event.Limited, "warning: super-segments of more than 64 KB seem to get lost on their way: %s. There are none any more until weft host is started again; leave super_segment_bytes out", why)
}

// tellSupers tells why super-segments are shorter than they are to be.
func (d *daemon) tellSupers() {
	if s := d.superStatus(); s != nil && s.Why != d.supers.told {
		if d.supers.told = s.Why; s.Why != "" {
			d.log.Infof(event.Limited, "super-segments of TCP have at most %d bytes, not %d: %s", s.Bytes, s.Asked, s.Why)
		}
	}
}

// superStatus is nil where nothing is asked for.
func (d *daemon) superStatus() *SuperStatus {
	c := d.config
	o, ok := d.spray.(longSprayer)
	if !ok || !c.asksSupers() {
		return nil
	}
	s := &SuperStatus{Asked: c.SuperSegmentBytes, Fallbacks: d.supers.fallbacks}
	switch s.Bytes, s.Why = o.Supers(); {
	case d.supers.lost():
		s.Why = d.supers.why
	case !c.offloads():
		s.Why = "mode gateway takes no longer ones"
	case !c.numbersAtUplink():
		s.Why = "a " + c.policy().Unit.String() + " is no super-segment"
	}
	return s
}
