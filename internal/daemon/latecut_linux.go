package daemon

import (
	"fmt"

	"weft/internal/event"
)

// lateCutter is the part of a program that says whether it cuts super-segments late.
type lateCutter interface {
	CutsLate() (late bool, why string)
}

// lateStatus is nil where super-segments are not cut into packets.
func (d *daemon) lateStatus() *LateCutStatus {
	c := d.config
	o, ok := d.spray.(lateCutter)
	if !ok || !c.offloads() || !c.perPacket() {
		return nil
	}
	if !c.cutsLate() {
		return &LateCutStatus{Why: fmt.Sprintf("on links of %.4g Mbit/s TCP cuts itself, so that it hears of what its queue drops", c.rate()/1e6)}
	}
	s := &LateCutStatus{}
	s.Active, s.Why = o.CutsLate()
	return s
}

// tellLate tells once why super-segments are not cut late though they are to be.
func (d *daemon) tellLate() {
	why := ""
	if s := d.lateStatus(); s != nil && d.config.cutsLate() {
		why = s.Why
	}
	if d.early == why {
		return
	}
	if d.early = why; why != "" {
		d.log.Infof(event.Limited, "TCP cuts super-segments into packets itself, which costs more processor time: %s", why)
	}
}
