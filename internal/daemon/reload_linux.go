package daemon

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"weft/internal/event"
	"weft/topology"
)

// reload reads the configuration again, and returns what the daemon does then. A wrong
// configuration, or one that needs a restart, changes nothing.
func (d *daemon) reload(ctx context.Context) (string, error) {
	next, err := Load(d.file)
	if err == nil {
		err = d.change(ctx, next)
	}
	return d.summary(), err
}

// change applies a configuration, all of it or nothing. If it cannot bring back the old
// state either, weft gets out of the way, and tries again by itself.
func (d *daemon) change(ctx context.Context, next *Config) error {
	defer d.event()()
	defer d.paceByKeys()
	defer d.reportByKeys()
	if err := d.config.canBecome(next); err != nil {
		return err
	}
	next = next.over(d.config.encapsulation())
	if next.learns() {
		next.views = d.config.views
	}
	if !d.working {
		return d.changeIdle(next)
	}
	next.auto, next.order = d.config.auto, d.config.order // what runs goes on
	if err := next.canGoOn(); err != nil {
		return err
	}
	if err := d.apply(ctx, next); err != nil {
		return err
	}
	d.reloads++
	return nil
}

// apply carries out a configuration that this daemon can become.
func (d *daemon) apply(ctx context.Context, next *Config) error {
	c, err := d.prepare(ctx, next)
	if err != nil {
		return err
	}
	if err := c.carryOut(); err != nil {
		return err
	}
	d.config = next
	return nil
}

// changeIdle takes over a configuration while weft is out of the way. The next try begins
// with it.
func (d *daemon) changeIdle(next *Config) error {
	d.config = next
	d.reloads++
	d.trouble.again()
	return nil
}

// change is a change of configuration under way: steps, each with its way back.
type change struct {
	*daemon
	old, next *Config
	steps     []step
}

// step is a part of a change. undo is called if a later step fails, and must be
// right after do has failed, too.
type step struct {
	do, undo func() error
	done     func() // if not nil, called when the whole change has been carried out
}

// prepare checks what can be known beforehand, and lists the steps. Routes come first, so
// that nothing is sprayed over what is not there yet.
func (d *daemon) prepare(ctx context.Context, next *Config) (*change, error) {
	if err := d.checkControl(next); err != nil {
		return nil, err
	}
	if err := d.stillThere(ctx, next); err != nil {
		return nil, err
	}
	plan, err := next.plan(d.place)
	if err != nil {
		return nil, err
	}
	former, err := d.config.plan(d.place)
	if err != nil {
		return nil, err
	}
	c := &change{daemon: d, old: d.config, next: next}
	c.add(func() error { return d.changeSetUp(former, plan) }, func() error { return d.changeSetUp(former, former) })
	same := sameFabric(next.fabric, c.old.fabric) && sameFabric(next.six(), c.old.six()) && next.Topology == c.old.Topology
	samePolicy := next.policy() == c.old.policy() && next.policyOptions() == c.old.policyOptions()
	anew := !same || !next.Failures.sameButKeys(c.old.Failures)
	t := d.topology
	if anew {
		t = next.fabric
	}
	sameDatagrams := reflect.DeepEqual(next.spraysDatagrams(), c.old.spraysDatagrams())
	sameBehind := slices.Equal(next.behind(d.place), c.old.behind(d.place))
	if d.receiver != nil && !slices.Equal(next.behindHere(d.place), c.old.behindHere(d.place)) {
		return nil, next.lines.Errorf("behind", "what is behind this host itself cannot change while the daemon restores the order; restart it (systemctl restart weft-host)")
	}
	replaces := d.spray != nil && (!same || !samePolicy || !sameDatagrams || !sameBehind)
	if (anew || replaces) && next.needsGateway() { // each part would wait for it, and again on the way back
		if err := d.kernel.reach(d.place); err != nil {
			return nil, err
		}
	}
	if replaces {
		c.replaceProgram(t)
	}
	if !sameBehind {
		c.add(func() error { d.noted.find(next, d.place); return nil }, func() error { d.noted.find(c.old, d.place); return nil })
	}
	if d.receiver != nil && !samePolicy {
		c.add(func() error { return c.setPolicy(next) }, func() error { return c.setPolicy(c.old) })
	}
	if r, ok := d.receiver.(interface{ setPeerKeys([]Peer) error }); ok && next.tunnels() {
		c.add(func() error { return r.setPeerKeys(next.UDP.Peers) }, func() error { return r.setPeerKeys(c.old.UDP.Peers) })
	}
	if next.diverts() != d.diverted {
		c.add(func() error { return d.divert(next.diverts()) }, func() error { return d.divert(!next.diverts()) })
	}
	switch {
	case d.follower == nil:
	case anew:
		before := d.topology
		set := d.setTopology
		if replaces {
			set = d.setReceiverTopology // a program knows one fabric
		}
		c.add(func() error { return set(t) }, func() error { return set(before) })
		c.add(func() error { return c.followAnew(next, t) }, func() error { return c.followAnew(c.old, c.old.fabric) })
		c.add(func() error { return d.goBy(next) }, func() error { return nil })
	default:
		c.add(func() error { return d.follower.setKeys(next) }, func() error { return d.follower.setKeys(c.old) })
	}
	return c, nil
}

func (c *change) add(do, undo func() error) { c.steps = append(c.steps, step{do: do, undo: undo}) }

// patient has the program at the uplink, which an earlier step may have brought, and systemd
// wait for a step: a busy kernel may have each one wait for seconds.
func (c *change) patient() {
	c.lease()
	if c.lives(time.Now()) {
		c.loop.Watchdog()
	}
}

// carryOut does all steps, or undoes those that it did.
func (c *change) carryOut() error {
	for i, s := range c.steps {
		c.patient()
		err := s.do()
		if err == nil {
			continue
		}
		var undo error
		for ; i >= 0; i-- {
			c.patient()
			undo = errors.Join(undo, c.steps[i].undo())
		}
		if undo == nil {
			undo = c.goBy(c.old) // by what is known now
		}
		if undo != nil {
			c.takeAway(fmt.Sprintf("a reload failed, and so did going back: %v", undo))
			return fmt.Errorf("%w (and going back: %w; packets go as the kernel's routes have them, until that succeeds)", err, undo)
		}
		return err
	}
	for _, s := range c.steps {
		if s.done != nil {
			s.done()
		}
	}
	return nil
}

// replaceProgram attaches a program for the new configuration in place of the old one. The
// old one is closed when the whole change has succeeded. The Sampler belongs to the
// program.
func (c *change) replaceProgram(t *topology.Topology) {
	d, former, before := c.daemon, c.spray, c.topology
	same := sameFabric(before, t)
	var fresh sprayer
	c.steps = append(c.steps, step{
		do: func() (err error) {
			if err := c.closeSampler(); err != nil {
				return err
			}
			if fresh, err = d.attach(c.next, t); err != nil {
				return err
			}
			d.spray = fresh
			if same { // of another one nothing is proved yet
				err = d.carry(c.next, fresh, t, d.carriage, d.six)
			}
			return errors.Join(err, d.sample(c.next, t))
		},
		undo: func() error {
			err := c.closeSampler()
			if fresh == nil {
				return errors.Join(err, d.sample(c.old, before))
			}
			again, err2 := d.attach(c.old, before)
			if err2 != nil {
				return errors.Join(err, err2)
			}
			d.spray = again
			return errors.Join(err, d.retire(fresh), d.retire(former), d.carry(c.old, again, before, d.carriage, d.six), d.sample(c.old, before))
		},
		done: func() {
			if err := d.retire(former); err != nil {
				d.log.Warnf(event.Trouble, "the former program at %s: %v", d.place.uplink.Name, err)
			}
		},
	})
}

func (c *change) closeSampler() error {
	s := c.sampler
	c.sampler = nil
	if s == nil {
		return nil
	}
	return s.Close()
}

func (c *change) setPolicy(to *Config) error {
	if err := c.receiver.SetPolicy(to.Policy, to.policyOptions()); err != nil {
		return to.lines.Errorf("policy", "%w", err)
	}
	return nil
}

func (c *change) followAnew(to *Config, t *topology.Topology) error {
	f := c.follower
	c.follower = nil
	if f != nil {
		if err := f.Close(); err != nil {
			return err
		}
		c.inbox.clear()
		c.heard, c.carriage, c.six, c.told = nil, nil, course{}, views{}
	}
	err := c.daemon.follow(to, t)
	c.tellUplinks(to)
	c.hearAll()
	return err
}

// divert leads programs' packets into the TUN, or past it.
func (d *daemon) divert(into bool) error {
	lead := d.setup.Undivert
	if into {
		lead = d.setup.Divert
	}
	if err := lead(); err != nil {
		return err
	}
	d.diverted = into
	return nil
}

// errAddress6 says that what receives packets would have to be made anew.
var errAddress6 = errors.New("this host's IPv6 address in the fabric is now")

// errUplinks says the same of all parts.
var errUplinks = errors.New("this host's uplinks are now")

// stillThere checks that what was found out at the start also holds in another topology. A
// tunnel's peers cannot change.
func (d *daemon) stillThere(ctx context.Context, c *Config) error {
	if c.tunnels() {
		return nil
	}
	at, err := d.kernel.find(ctx, c)
	if err != nil {
		return err
	}
	if at.address != d.place.address || at.uplink.Index != d.place.uplink.Index {
		return fmt.Errorf("this host is now %s by %s, and was %s by %s; restart the daemon",
			at.address, at.uplink.Name, d.place.address, d.place.uplink.Name)
	}
	if !slices.Equal(at.names(), d.place.names()) {
		return fmt.Errorf("%w %s, and were %s; restart the daemon", errUplinks, strings.Join(at.names(), ", "), strings.Join(d.place.names(), ", "))
	}
	if d.receiver != nil && at.address6.IsValid() && at.address6 != d.place.address6 {
		return fmt.Errorf("%w %s; restart the daemon", errAddress6, at.address6)
	}
	if at.gateway6.IsValid() {
		d.place.gateway6 = at.gateway6
	}
	d.place.ways = slices.Clone(d.place.ways)
	for i, w := range at.ways {
		if w.to6.IsValid() {
			d.place.ways[i].to6, d.place.ways[i].gateway6 = w.to6, w.gateway6
		}
	}
	return nil
}
