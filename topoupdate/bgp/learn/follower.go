package learn

import (
	"log/slog"
	"time"

	"weft/topoupdate/bgp"
)

// follower tells a Host what is new. It is not safe for concurrent use.
type follower struct {
	host   Host
	log    *slog.Logger
	base   bgp.Views // the fabric that the Host goes by
	growth bgp.Growth
	failed bool   // the Host did not take what is to be told
	why    string // nothing was learned the last time
}

// hear takes what the switches tell now, or why they tell nothing.
func (w *follower) hear(now time.Time, v bgp.Views, err error) {
	if err != nil {
		if why := err.Error(); why != w.why {
			w.why = why
			w.log.Warn("the switches tell nothing; what they told before holds", "why", why)
		}
		return
	}
	w.why = ""
	if w.base.Fabric6 == nil {
		v.Fabric6 = nil // the Host has begun without
	}
	left, next, grown := w.base.Within(v)
	w.growth.Hear(now, next, grown)
	w.tell(left)
}

// grow has the Host go by a fabric that has grown, when it is due.
func (w *follower) grow(now time.Time) {
	v, ok := w.growth.Take(now)
	if !ok {
		return
	}
	if v.Fabric6 == nil {
		v.Fabric6 = w.base.Fabric6 // probes find out that there is none
	}
	w.base = v
	w.log.Info("the switches tell of another fabric", "topology", v.Fabric.String())
	w.tell(v)
}

// tell has the Host go by what is known of each family.
func (w *follower) tell(v bgp.Views) {
	w.failed = false
	w.took(w.host.SetTopology(v.Fabric))
	if v.Fabric6 != nil {
		w.took(w.host.SetTopology6(v.Fabric6))
	}
}

func (w *follower) took(err error) {
	if err != nil {
		w.failed = true
		w.log.Warn("the host does not take the switches' news, and is told again", "why", err)
	}
}

// next is when there is something to do though the switches tell nothing; the zero Time:
// there is not.
func (w *follower) next(now time.Time) time.Time {
	at := w.growth.Due()
	if again := now.Add(tryAgain); w.failed && (at.IsZero() || again.Before(at)) {
		at = again
	}
	return at
}
