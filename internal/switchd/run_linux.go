package switchd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"weft/fabric"
	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/internal/scheduling"
	"weft/internal/service"
	"weft/topology"
	"weft/topoupdate"
)

// Run is weft switch: it runs an agent as a configuration file says until a signal or the
// context ends it. On SIGHUP it reads the keys of the file again. All threads of the
// process must be in one network namespace. Run writes its messages to log, one a line.
func Run(ctx context.Context, name string, signals <-chan os.Signal, messages io.Writer) error {
	f, err := Load(name)
	if err != nil {
		return err
	}
	self, err := f.self()
	if err != nil {
		return err
	}
	d := &daemon{name: name, self: self, file: f, log: f.Log.To(messages), start: time.Now()}
	defer d.log.Close() // when all else is done
	c := f.config(self, d.start)
	d.origin = d.start
	var asked []io.Closer // by others, who are let go when all else is done
	defer func() {
		for _, c := range asked {
			c.Close()
		}
	}()
	if err := d.setUp(c); err != nil {
		d.endBalance()
		return err
	}
	service.LimitMemory()
	service.ShowName()
	c.Boot = d.boot()
	c.Log = d.log
	if d.setup != nil {
		defer d.setup.Close()
		c.owned, c.fixed = append(c.owned, d.setup), true
	}
	if d.meter != nil {
		defer d.meter.Close()
		c.owned = append(c.owned, d.meter)
	}
	if err := d.tell(c); err != nil {
		d.endBalance()
		return err
	}
	defer d.endTelling()
	defer d.endBalance()
	if d.balance != nil {
		c.owned, c.group = append(c.owned, d.balance), d.balance.Group
	}
	if d.classifier != nil {
		c.owned, c.step = append(c.owned, d.classifier), d.classifier.Step
	}
	d.loop = service.Loop{Notifier: service.NewNotifier(), Log: d.log, Summary: d.summary, Reload: d.reload, Alive: d.alive}
	defer d.loop.Close()
	if d.agent, err = Start(c); err != nil {
		return err
	}
	defer d.agent.Close()
	if err := d.schedule(c); err != nil {
		return err
	}
	defer d.endScheduling()
	defer d.end()
	socket, err := d.listen()
	if err != nil {
		return err
	}
	asked = append(asked, socket)
	over, err := service.ServeMetrics(d.file.Metrics, d.collector())
	if err != nil {
		return d.file.lines.Errorf("metrics.listen", "%w", err)
	}
	asked = append(asked, over)
	d.loop.Begin()
	err = d.serve(ctx, signals)
	d.loop.Stopping()
	return err
}

// daemon is a run.
type daemon struct {
	name       string
	self       topology.NodeID
	file       *File
	log        *eventlog.Log
	loop       service.Loop
	agent      *Agent
	setup      *fabric.SwitchSetup // nil without
	meter      *fabric.Meter       // nil without
	asking     sync.Mutex          // held while what is not safe for concurrent use is asked for a status
	ended      bool                // that is closed, or will be: it is asked no more; with asking
	extensions []fabric.ExtensionStatus
	noMeter    error                           // why there is none to be read
	teller     *fabric.Teller                  // nil without
	keys       atomic.Pointer[topoupdate.Keys] // that the teller signs with
	balance    *fabric.Balance                 // nil without
	classifier *fabric.Classifier              // nil without
	scheduler  *scheduling.Node                // nil without
	plain      string                          // why there is none of both although one is wanted
	start      time.Time                       // of the clock that the keys' times are on
	origin     time.Time                       // the time of day of start, by the machine's clock as it was last looked at
}

// end has later statuses ask nothing that is about to be closed.
func (d *daemon) end() {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.ended = true
}

// self finds the switch in the fabric.
func (f *File) self() (topology.NodeID, error) {
	if f.Node != "" {
		n, err := f.fabric.Lookup(f.Node)
		return n.ID, err
	}
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return 0, err
	}
	addrs, err := lo.Addrs()
	if err != nil {
		return 0, err
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if id, ok := f.fabric.ByAddr(p.Addr()); ok && f.fabric.Node(id).Layer != topology.LayerHost {
			return id, nil
		}
	}
	return 0, f.lines.Errorf("node", "%w", errNode)
}

// serve waits for what happens.
func (d *daemon) serve(ctx context.Context, signals <-chan os.Signal) error {
	watchdog, stop := d.loop.Due()
	defer stop()
	look := time.NewTicker(lookAtClock)
	defer look.Stop()
	for {
		if d.loop.Pending(signals) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.agent.Done():
			return fmt.Errorf("the agent has ended: %w", d.agent.Err())
		case s := <-signals:
			if d.loop.Signal(s) {
				return nil
			}
		case <-look.C:
			d.log.Flush()
			if keys, set := d.keysAt(time.Now().Round(0), time.Since(d.start)); set {
				d.log.Info(event.ClockSet, "the clock was set: keys sign from their times by the new one")
				_ = d.agent.SetKeys(keys) // the same as before but for their times
				d.keys.Store(&keys)
				d.signReports(d.file)
			}
		case <-watchdog:
			d.loop.Watch()
		}
	}
}

const (
	// lookAtClock is how often the machine's clock is looked at.
	lookAtClock = 10 * time.Second
	// clockSet is the least change of the clock that counts. A smaller one does not matter
	// to any key.
	clockSet = time.Second
)

// keysAt returns the keys, with their times converted by the time of day wall, which is
// elapsed after the start. set reports whether the clock was set since the last call. A
// machine may start with a wrong clock and learn the time later.
func (d *daemon) keysAt(wall time.Time, elapsed time.Duration) (keys topoupdate.Keys, set bool) {
	origin := wall.Add(-elapsed)
	if origin.Sub(d.origin.Round(0)).Abs() >= clockSet {
		d.origin, set = origin, true
	}
	return d.file.keys(d.origin), set
}

// boot returns the number of this start of the agent: the time of day, which does not go
// back from one start to the next. If the number were lower than before, hosts would
// believe the agent only after max_age.
func (d *daemon) boot() uint64 {
	dir, err := makeDir(-1, -1)
	var clock *service.Clock
	if err == nil {
		clock, err = service.OpenClock(filepath.Join(dir, clockFile))
	}
	if err != nil {
		d.log.Warnf(event.Limited, "note: %v; if the clock is set back and this agent starts again, hosts believe it only after max_age", err)
	}
	if clock == nil {
		return 0 // the machine's time
	}
	return uint64(clock.Now().UnixNano())
}

// summary says in a line what the agent does.
func (d *daemon) summary() string {
	t := d.file.fabric
	return fmt.Sprintf("%s of %s: %d ports, hellos every %v", t.Node(d.self).Name, t, len(d.agent.names), d.file.Hello)
}

// alive reports whether the agent works: one that says no hellos is better begun anew.
func (d *daemon) alive() bool {
	late := d.agent.late()
	if late < d.loop.Every() {
		return true
	}
	d.log.Warnf(event.Late, "the agent has been due for %v and does not run", late.Round(time.Millisecond))
	return false
}

var errRestart = errors.New("only keys and accept_unsigned can change while the agent runs; restart it (systemctl restart weft-switch), which costs no link")

// reload reads the keys again, and says how many there are.
func (d *daemon) reload() (string, error) {
	next, err := Load(d.name)
	if err != nil {
		return "", err
	}
	if !d.file.sameButKeys(next) {
		return "", fmt.Errorf("%s: %w", d.name, errRestart)
	}
	d.keysAt(time.Now().Round(0), time.Since(d.start))
	keys := next.keys(d.origin)
	if err := d.agent.SetKeys(keys); err != nil {
		return "", err
	}
	d.keys.Store(&keys)
	d.signReports(next)
	d.file = next
	return fmt.Sprintf("%d keys", len(next.Keys)), nil
}
