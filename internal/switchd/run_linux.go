package switchd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"weft/fabric"
	"weft/internal/memlimit"
	"weft/internal/notify"
	"weft/internal/privileges"
	"weft/internal/steadyclock"
	"weft/topology"
	"weft/topoupdate"
)

// Run is weft switch: it runs an agent as a configuration file says until a
// signal or the context ends it. SIGHUP makes it read the keys of the file again.
// All threads of the process must be in one network namespace. messages, a line
// each, go to log.
func Run(ctx context.Context, name string, signals <-chan os.Signal, messages io.Writer) error {
	f, err := Load(name)
	if err != nil {
		return err
	}
	self, err := f.self()
	if err != nil {
		return err
	}
	d := &daemon{name: name, file: f, log: log.New(messages, "", 0), start: time.Now()}
	c := f.config(self, d.start)
	d.origin = d.start
	if err := d.setUp(c); err != nil {
		return err
	}
	memlimit.Set()
	c.Boot = d.boot()
	c.Log = func(message string) { d.log.Print(message) }
	if d.setup != nil {
		defer d.setup.Close()
		c.owned, c.fixed = append(c.owned, d.setup), true
	}
	if d.meter != nil {
		defer d.meter.Close()
		c.owned = append(c.owned, d.meter)
	}
	d.notify = notify.New()
	defer d.notify.Close()
	if d.agent, err = Start(c); err != nil {
		return err
	}
	defer d.agent.Close()
	socket, err := d.listen()
	if err != nil {
		return err
	}
	if socket != nil {
		defer socket.Close()
	}
	d.summary = fmt.Sprintf("%s of %s: %d ports, hellos every %v", f.fabric.Node(self).Name, f.fabric, len(d.agent.names), f.Hello)
	d.notify.Ready(d.summary)
	d.log.Print(d.summary)
	if note := privileges.Shared(); note != "" {
		d.log.Print("note: ", note)
	}
	err = d.serve(ctx, signals)
	d.notify.Stopping()
	return err
}

// daemon is a run.
type daemon struct {
	name    string
	file    *File
	log     *log.Logger
	notify  notify.Notifier
	agent   *Agent
	setup   *fabric.SwitchSetup // nil without
	meter   *fabric.Meter       // nil without
	noMeter error               // why there is none to be read
	start   time.Time           // of the clock that the keys' times are on
	origin  time.Time           // the time of day of start, by the machine's clock as it was last looked at
	summary string
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
	watchdog, stop := d.notify.Due()
	defer stop()
	look := time.NewTicker(lookAtClock)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.agent.Done():
			return fmt.Errorf("the agent has ended: %w", d.agent.Err())
		case s := <-signals:
			if s != syscall.SIGHUP {
				d.log.Printf("%v: stopping", s)
				return nil
			}
			d.hangUp()
		case <-look.C:
			if keys, set := d.keysAt(time.Now().Round(0), time.Since(d.start)); set {
				d.log.Print("the clock was set: keys sign from their times by the new one")
				_ = d.agent.SetKeys(keys) // the same as before but for their times
			}
		case <-watchdog:
			d.watch()
		}
	}
}

const (
	// lookAtClock is how often the machine's clock is looked at.
	lookAtClock = 10 * time.Second
	// clockSet is how much a clock is set at least; a smaller difference does not
	// matter to any key.
	clockSet = time.Second
)

// keysAt returns the keys with their times by the time of day, so long after the start,
// and whether the clock was set since the last look. A machine may start with a wrong
// clock, and be told the time later.
func (d *daemon) keysAt(wall time.Time, elapsed time.Duration) (keys topoupdate.Keys, set bool) {
	origin := wall.Add(-elapsed)
	if origin.Sub(d.origin.Round(0)).Abs() >= clockSet {
		d.origin, set = origin, true
	}
	return d.file.keys(d.origin), set
}

// boot numbers this start of the agent: by the time of day, which does not go back from
// one start to the next. With a lower number hosts would believe the agent only after
// max_age.
func (d *daemon) boot() uint64 {
	dir, err := statusDir()
	if err == nil {
		err = makeStatusDir(-1, -1)
	}
	var clock *steadyclock.Clock
	if err == nil {
		clock, err = steadyclock.Open(filepath.Join(dir, clockFile))
	}
	if err != nil {
		d.log.Printf("note: %v; if the clock is set back and this agent starts again, hosts believe it only after max_age", err)
	}
	if clock == nil {
		return 0 // the machine's time
	}
	return uint64(clock.Now().UnixNano())
}

// hangUp does what SIGHUP asks for.
func (d *daemon) hangUp() {
	d.notify.Reloading()
	if err := d.reload(); err != nil {
		d.log.Printf("reload refused, all stays as it is: %v", err)
	} else {
		d.log.Printf("reloaded: %d keys", len(d.file.Keys))
	}
	d.notify.Ready(d.summary)
}

// watch tells the watchdog that the agent works, if it does: one that says no
// hellos is better begun anew.
func (d *daemon) watch() {
	if late := d.agent.late(); late < d.notify.Every() {
		d.notify.Watchdog()
	} else {
		d.log.Printf("the agent has been due for %v and does not run", late.Round(time.Millisecond))
	}
}

var errRestart = errors.New("only keys and accept_unsigned can change while the agent runs; restart it (systemctl restart weft-switch), which costs no link")

// reload reads the keys again.
func (d *daemon) reload() error {
	next, err := Load(d.name)
	if err != nil {
		return err
	}
	if !d.file.sameButKeys(next) {
		return fmt.Errorf("%s: %w", d.name, errRestart)
	}
	d.keysAt(time.Now().Round(0), time.Since(d.start))
	if err := d.agent.SetKeys(next.keys(d.origin)); err != nil {
		return err
	}
	d.file = next
	return nil
}
