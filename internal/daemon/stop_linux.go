package daemon

import (
	"errors"
	"fmt"
	"io"
	"time"

	"weft/internal/event"
)

// takeDown undoes bringUp as far as that came, and loses no connection. First, packets of
// programs bypass the TUN. Then the dataplane delivers what it still has, and the kernel
// receives again. Then the routes alone say where packets go. The settings of the set-up
// stay.
func (d *daemon) takeDown(drain time.Duration) error {
	var errs []error
	try := func(f func() error) { errs = append(errs, f()) }
	if d.follower != nil {
		try(d.follower.Close)
		d.inbox.clear()
	}
	if d.sampler != nil {
		try(d.sampler.Close)
	}
	if d.setup != nil {
		try(d.setup.Withdraw)
	}
	if d.receiver != nil {
		time.Sleep(drain)
		try(d.receiver.Close)
	}
	if d.spray != nil {
		try(func() error { return d.retire(d.spray) })
	}
	d.parts = parts{}
	return errors.Join(errs...)
}

// stop undoes start, as far as that came. The kernel is given everything back first: those
// who ask for the status or metrics are others' programs. In the end the log tells what it has
// suppressed.
func (d *daemon) stop() error {
	defer d.log.Close()
	left := d.leaveMesh() // while packets still take their way
	asked, err := d.giveBack()
	for _, c := range asked {
		err = errors.Join(err, c.Close())
	}
	if left != nil { // the registration ends by itself
		d.log.Warnf(event.Trouble, "leave the mesh: %v", left)
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// giveBack undoes start but for the ways by which others ask, which it returns. They may wait
// for mu.
func (d *daemon) giveBack() (asked []io.Closer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loop.Stopping()
	err = d.takeDown(d.config.Drain)
	if d.setup != nil {
		err = errors.Join(err, d.setup.Restore())
	}
	if d.pacer != nil {
		err = errors.Join(err, d.pacer.Close())
	}
	if d.noted != nil {
		err = errors.Join(err, d.noted.close())
	}
	if d.scheduler != nil {
		d.pinned.use(nil)
		err = errors.Join(err, d.scheduler.Close())
	}
	if d.learner != nil {
		err = errors.Join(err, d.learner.Close())
	}
	for _, c := range []io.Closer{d.status, d.metrics} {
		if c != nil {
			asked = append(asked, c)
		}
	}
	d.setup, d.pacer, d.noted, d.scheduler, d.learner, d.status, d.metrics = nil, nil, nil, nil, nil, nil, nil
	return asked, err
}
