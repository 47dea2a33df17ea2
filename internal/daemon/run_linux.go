package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	plane "weft/internal/dataplane"
	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/internal/hostsetup"
	"weft/internal/service"
)

const (
	// beat is how often the owner looks at what the kernel does not report, and confirms to
	// the programs at the uplink that somebody watches over them.
	beat = 200 * time.Millisecond
	// calm is how often everything is compared while the kernel reports no change and all is
	// right.
	calm = 5 * time.Second
	// settle is the least time between two comparisons of everything while the kernel
	// reports one change after the other.
	settle = 20 * time.Millisecond
)

// Run is weft host: it sets the machine up as a configuration file says and carries its
// packets until a signal or the context ends it. On SIGHUP it reads the file again. All
// threads of the process must be in one network namespace. Run writes its messages to log,
// one a line.
func Run(ctx context.Context, file string, signals <-chan os.Signal, messages io.Writer) (err error) {
	c, err := Load(file)
	if err != nil {
		return err
	}
	l := c.Log.To(messages)
	defer l.Close()
	if err := dropPrivileges(c, l); err != nil {
		return err
	}
	d := newDaemon(file, c, theKernel(), l)
	if d.control, err = c.keepControl(); err != nil {
		return err
	}
	defer d.control.Close()
	service.ShowName()
	if d.memory = service.LimitMemory(); c.receives() {
		d.tellOfMemory()
	}
	if c.keyed() {
		d.remember()
	}
	d.loop = service.Loop{Notifier: service.NewNotifier(), Log: d.log, Summary: d.summary,
		Reload: func() (string, error) { return d.reload(ctx) },
		Alive:  func() bool { return d.alive(time.Now()) }}
	defer d.loop.Close()
	watch, err := hostsetup.NewWatch() // before anything is set up, so that no change of it is missed
	if err != nil {
		return err
	}
	defer watch.Close()
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	d.loop.Begin()
	return d.serve(ctx, signals, watch.Changed())
}

func newDaemon(file string, c *Config, k kernel, l *eventlog.Log) *daemon {
	return &daemon{file: file, log: l, started: time.Now(), kernel: k, inbox: newInbox(), state: state{config: c}}
}

// tellOfMemory tells that the reorder buffer is smaller than it is configured.
func (d *daemon) tellOfMemory() {
	if d.memory > 0 && d.memory < leastMemory {
		d.log.Warnf(event.Limited, "note: the control group allows %d MB of memory (MemoryMax=), and the kernel ends this daemon where that is too little: allow %d MB",
			d.memory>>20, leastMemory>>20)
	}
	asked, err := d.config.Resequencer.config()
	if given := within(asked, d.memory); err == nil && given != asked {
		d.log.Infof(event.Limited, "note: the control group allows %d MB of memory (MemoryMax=): at most %d KB and %d packets wait for others, where the configuration has %d KB and %d",
			d.memory>>20, given.TotalBytes>>10, given.TotalPackets, asked.TotalBytes>>10, asked.TotalPackets)
	}
}

// remember makes the time of day go on across starts of the daemon, even if somebody sets
// the machine's clock back. The numbers of datagrams begin with the time, and peers refuse
// numbers below those that they have seen.
func (d *daemon) remember() {
	dir, err := hostsetup.MakeDir(-1, -1)
	if err == nil {
		var clock *service.Clock
		clock, err = service.OpenClock(filepath.Join(dir, hostsetup.ClockFile))
		d.time = clock.Now
	}
	if err != nil {
		d.log.Warnf(event.Limited, "note: %v; if the clock is set back and this daemon starts again, peers with a key refuse its packets until the clock has caught up", err)
	}
}

// serve takes one event after the other.
func (d *daemon) serve(ctx context.Context, signals <-chan os.Signal, changed <-chan struct{}) error {
	every := time.NewTimer(plane.UntilBeat(beat))
	defer every.Stop()
	watchdog, stop := d.loop.Due()
	defer stop()
	var looked time.Time
	dirty := false
	for {
		if d.loop.Pending(signals) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-signals:
			if d.loop.Signal(s) {
				return nil
			}
		case <-d.inbox.wake:
			d.hear(ctx)
		case r := <-d.rosters():
			r.done <- d.setRoster(r.peers)
		case o := <-d.requests:
			o.done <- o.do(ctx)
		case <-d.learned():
			d.relearn(time.Now())
		case <-d.receiverDone():
			d.receiverEnded()
			d.reconcile(ctx, time.Now())
		case <-changed:
			d.hurry()
			if dirty = time.Since(looked) < settle; !dirty {
				d.reconcile(ctx, time.Now())
				looked = time.Now()
			}
		case <-every.C:
			every.Reset(plane.UntilBeat(beat))
			d.log.Flush()
			d.tellMesh()
			d.grow(ctx, time.Now())
			if now := time.Now(); dirty || d.overdue(now, looked) {
				dirty = false
				d.reconcile(ctx, now)
				looked = time.Now()
			} else {
				d.glance(now)
			}
		case <-watchdog:
			d.loop.Watch()
		}
	}
}

// hurry has what has failed tried again soon, since the kernel has changed.
func (d *daemon) hurry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trouble.sooner()
}

// overdue reports whether it is time to try again what has failed, or to compare everything.
func (d *daemon) overdue(now, looked time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	every := retryAfter
	if d.working && d.trouble.why == "" {
		every = calm
	}
	return now.Sub(looked) >= every || d.trouble.hurried && !now.Before(d.trouble.retry)
}

// receiverDone is never ready where there is no receiver.
func (d *daemon) receiverDone() <-chan struct{} {
	if d.receiver == nil {
		return nil
	}
	return d.receiver.Done()
}

// receiverEnded takes weft out of the way after its dataplane has failed, for instance
// because the TUN was removed.
func (d *daemon) receiverEnded() {
	defer d.event()()
	d.takeAway(fmt.Sprintf("what moves packets has ended: %v", d.receiver.Err()))
}

// event begins one of the owner's events and returns what ends it. Before and after, it
// confirms to the program at the uplink that somebody watches over its paths.
func (d *daemon) event() (end func()) {
	d.mu.Lock()
	d.lease()
	return func() {
		if d.spray != nil && d.working {
			d.spray.Beat()
		}
		d.mu.Unlock()
	}
}

// lease has the program at the uplink wait for the end of an event: the kernel may make
// changes of devices and routes wait for those of others.
func (d *daemon) lease() {
	if d.spray != nil && d.working {
		d.spray.Lease()
	}
}

// alive reports whether what moves packets lives, besides the owner itself.
func (d *daemon) alive(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lives(now)
}

// lives is alive for who has the lock.
func (d *daemon) lives(now time.Time) bool {
	if d.receiver == nil || !d.working || d.receiver.alive(now) {
		return true
	}
	d.complain(now, "what moves packets does not show that it lives")
	return false
}
