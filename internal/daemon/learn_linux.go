package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/event"
	"weft/topoupdate/bgp"
)

// learned is never ready where the fabric is configured.
func (d *daemon) learned() <-chan struct{} {
	if d.learner == nil {
		return nil
	}
	return d.learner.changed()
}

// relearn goes by what the switches tell now. Ways that they have withdrawn are out of use at
// once. What is new waits (bgp.Growth). While they tell nothing, as when a session has ended,
// what they told before holds, and probes find out the rest. Each family keeps its fabric
// while nothing of it is new.
func (d *daemon) relearn(now time.Time) {
	defer d.event()()
	d.tellDoubts()
	if !d.working {
		d.trouble.sooner()
		return
	}
	v, err := d.learner.fabric()
	if err != nil {
		d.complain(now, err.Error())
		return
	}
	base := bgp.Views{Fabric: d.config.fabric, Fabric6: d.config.six()}
	left, next, more := base.Within(v.told())
	if base.Fabric6 == nil {
		next.Fabric6 = d.config.fabric6 // which may be there though it is not carried
	}
	told := *d.config
	told.views = v
	if a := told.receives6(); base.Fabric6 == nil && told.six() != nil || a.IsValid() && a != d.place.address6 {
		next.Fabric6, more = v.fabric6, true
	}
	d.growth.Hear(now, next, more)
	if d.told.fabric = left.Fabric; left.Fabric6 != nil {
		d.told.fabric6 = left.Fabric6
	}
	d.tellFollower(views{left.Fabric, left.Fabric6})
}

// maxDoubts bounds the doubts that the log tells of. The status has the latest.
const maxDoubts = 100

// tellDoubts tells what is not believed of what switches say, each once.
func (d *daemon) tellDoubts() {
	s := d.learner.status()
	if s == nil {
		return
	}
	for _, doubt := range s.Doubts {
		if len(d.doubts) < maxDoubts && !slices.Contains(d.doubts, doubt) {
			d.doubts = append(d.doubts, doubt)
			d.log.Warn(event.Doubt, "warning: BGP: "+doubt, "what", doubt)
		}
	}
}

// grow takes over a fabric that has grown, when it is due.
func (d *daemon) grow(ctx context.Context, now time.Time) {
	defer d.event()()
	if !d.working {
		return
	}
	to, ok := d.growth.Take(now)
	if !ok {
		return
	}
	next := *d.config
	next.views = views{to.Fabric, to.Fabric6}
	if is := next.policy().Unit; is.Kind != d.config.policy().Unit.Kind {
		d.takeAway(fmt.Sprintf("the rates of the links are others, and each %v takes a path now", is)) // and back with it
		return
	}
	err := d.growTo(ctx, &next)
	if errors.Is(err, errAddress6) {
		d.takeAway(fmt.Sprintf("%v %s", errAddress6, next.receives6())) // and back with it
		return
	}
	if errors.Is(err, errUplinks) {
		d.takeAway(errUplinks.Error() + " others")
		return
	}
	if err != nil {
		d.complain(now, "the fabric that the switches tell of cannot be taken over: "+err.Error())
		return
	}
	d.log.Info(event.Topology, "the switches tell of another fabric: "+d.describe(), "topology", d.config.fabricName())
}
