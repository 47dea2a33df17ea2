package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// rebaseAfter is how long what is new in a fabric is held back, since news come in bursts. If
// more is new soon after, that is held back twice as long, up to rebaseMost. After so long a
// quiet time it is as at first.
const (
	rebaseAfter = time.Second
	rebaseMost  = time.Minute
)

// rebase is that the fabric has grown.
type rebase struct {
	to   views // none: it has not
	due  time.Time
	last time.Time     // when it was taken over the last time
	hold time.Duration // how long it was held back then
}

// wait returns for how long what is new now is held back.
func (r *rebase) wait(now time.Time) time.Duration {
	if r.hold == 0 || now.Sub(r.last) > rebaseMost {
		return rebaseAfter
	}
	return min(2*r.hold, rebaseMost)
}

// learned is never ready where the fabric is configured.
func (d *daemon) learned() <-chan struct{} {
	if d.learner == nil {
		return nil
	}
	return d.learner.changed()
}

// relearn goes by what the switches tell now. Ways that they have withdrawn are out of use at
// once. What is new waits. While they tell nothing, as when a session has
// ended, what they told before holds, and probes find out the rest. Each family keeps its
// fabric while nothing of it is new.
func (d *daemon) relearn(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tellDoubts()
	if !d.working {
		d.trouble.sooner()
		return
	}
	v, err := d.learner.fabric(d.config)
	if err != nil {
		d.complain(now, err.Error())
		return
	}
	next := d.config.views
	left, more := d.config.fabric.Within(v.fabric)
	if more {
		next.fabric = v.fabric
	}
	told := *d.config
	told.views = v
	switch six := d.config.six(); {
	case six != nil && v.fabric6 != nil:
		left6, more6 := six.Within(v.fabric6)
		if more6 {
			next.fabric6, more = v.fabric6, true
		}
		d.follower.heard(left6)
	case six != nil || d.config.carries6() && v.fabric6 != nil:
		next.fabric6, more = v.fabric6, true
	}
	if a := told.receives6(); a.IsValid() && a != d.place.address6 {
		next.fabric6, more = v.fabric6, true
	}
	if !more {
		d.rebase.to, d.rebase.due = views{}, time.Time{}
	} else if d.rebase.to = next; d.rebase.due.IsZero() {
		d.rebase.due = now.Add(d.rebase.wait(now))
	}
	d.follower.heard(left)
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
			d.log.Printf("warning: BGP: %s", doubt)
		}
	}
}

// grow takes over a fabric that has grown, when it is due.
func (d *daemon) grow(ctx context.Context, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rebase.to.fabric == nil || now.Before(d.rebase.due) || !d.working {
		return
	}
	next := *d.config
	next.views = d.rebase.to
	d.rebase = rebase{hold: d.rebase.wait(now), last: now}
	err := d.growTo(ctx, &next)
	if errors.Is(err, errAddress6) {
		d.takeAway(fmt.Sprintf("%v %s", errAddress6, next.receives6())) // and back with it
		return
	}
	if err != nil {
		d.complain(now, "the fabric that the switches tell of cannot be taken over: "+err.Error())
		return
	}
	d.log.Printf("the switches tell of another fabric: %s", d.describe())
}
