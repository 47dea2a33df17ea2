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
	"syscall"
	"time"

	"weft/fabric"
	"weft/internal/notify"
	"weft/internal/privileges"
	"weft/topology"
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
	if err := d.setUp(c); err != nil {
		return err
	}
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
		case <-watchdog:
			d.watch()
		}
	}
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
	if err := d.agent.SetKeys(next.keys(d.start)); err != nil {
		return err
	}
	d.file = next
	return nil
}
