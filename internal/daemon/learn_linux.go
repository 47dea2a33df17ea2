package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// rebaseAfter is how long what is new in a fabric is held back. A new fabric is proved anew,
// which has packets go plain for a moment, and news come in bursts.
const rebaseAfter = time.Second

// rebase is that the fabric has grown.
type rebase struct {
	to  views // none: it has not
	due time.Time
}

// learned is never ready where the fabric is configured.
func (d *daemon) learned() <-chan struct{} {
	if d.learner == nil {
		return nil
	}
	return d.learner.changed()
}

// relearn goes by what the switches tell now. Ways that they have withdrawn are out of use at
// once. What is new waits for rebaseAfter. While they tell nothing, as when a session has
// ended, what they told before holds, and probes find out the rest.
func (d *daemon) relearn(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.working {
		d.trouble.sooner()
		return
	}
	v, err := d.learner.fabric(d.config)
	if err != nil {
		d.complain(now, err.Error())
		return
	}
	left, more := d.config.fabric.Within(v.fabric)
	if six := d.config.six(); six != nil && v.fabric6 != nil {
		left6, more6 := six.Within(v.fabric6)
		more = more || more6
		d.told.fabric6 = left6
		d.follower.heard(d.place.lit(left6))
	} else if six != nil || d.config.carries6() && v.fabric6 != nil {
		more = true
	}
	told := *d.config
	told.views = v
	if a := told.receives6(); a.IsValid() && a != d.place.address6 {
		more = true
	}
	if !more {
		d.rebase = rebase{}
	} else if d.rebase.to = v; d.rebase.due.IsZero() {
		d.rebase.due = now.Add(rebaseAfter)
	}
	d.told.fabric = left
	d.follower.heard(d.place.lit(left))
}

// grow takes over a fabric that has grown, when it is due.
func (d *daemon) grow(ctx context.Context, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rebase.to.fabric == nil || now.Before(d.rebase.due) || !d.working {
		return
	}
	next := *d.config
	next.views, d.rebase = d.rebase.to, rebase{}
	err := d.apply(ctx, &next)
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
	d.log.Printf("the switches tell of another fabric: %s", d.describe())
}
