package daemon

import (
	"context"
	"errors"
	"net/netip"

	"weft/internal/event"
	"weft/internal/hostprog"
)

// growTo takes over a fabric that has grown, or of which only one family has. What is proved
// stays proved and carried (liveness.Watcher.SetTopology); only what is new is proved.
func (d *daemon) growTo(ctx context.Context, next *Config) error {
	if err := d.stillThere(ctx, next); err != nil {
		return err
	}
	plan, err := next.plan(d.place)
	if err != nil {
		return err
	}
	former, err := d.config.plan(d.place)
	if err != nil {
		return err
	}
	if next.needsGateway() { // or each part would wait for it, and again on the way back
		if err := d.kernel.reach(d.place); err != nil {
			return err
		}
	}
	c := &change{daemon: d, old: d.config, next: next}
	c.add(func() error { return d.changeSetUp(former, plan) }, func() error { return d.changeSetUp(former, former) })
	c.add(func() error { return c.goOnFollowing(next) }, func() error { return c.goOnFollowing(c.old) })
	c.growProgram()
	c.add(func() error { return c.useGrown(next) }, func() error { return c.useGrown(c.old) })
	if err := c.carryOut(); err != nil {
		return err
	}
	d.config = next
	return nil
}

// goOnFollowing has the follower go on in another fabric.
func (c *change) goOnFollowing(to *Config) error {
	if err := c.follower.rebase(to, c.place); err != nil {
		return err
	}
	if to.six() == nil {
		delete(c.heard, byIPv6)
	}
	if c.told.fabric != nil && !sameFabric(c.told.fabric, to.fabric) {
		c.told.fabric = nil
	}
	if c.told.fabric6 != nil && !sameFabric(c.told.fabric6, to.six()) {
		c.told.fabric6 = nil
	}
	c.tellUplinks(to)
	c.hearAll()
	return nil
}

// heardIn returns the latest news of a configuration's fabrics.
func (d *daemon) heardIn(c *Config) (four news, six news) {
	for _, by := range []string{c.encapsulation(), ""} {
		if n, ok := d.heard[by]; ok && sameFabric(n.topology, c.fabric) {
			four = n
			break
		}
	}
	if four.topology == nil {
		four.topology = c.fabric
	}
	if n, ok := d.heard[byIPv6]; ok && sameFabric(n.topology, c.six()) {
		six = n
	}
	return four, six
}

// growProgram attaches a program for the new fabrics in place of the old one. What the old
// one carries, the new one carries from its first packet on.
func (c *change) growProgram() {
	d, former := c.daemon, c.spray
	var fresh sprayer
	c.steps = append(c.steps, step{
		do: func() (err error) {
			if err := c.closeSampler(); err != nil {
				return err
			}
			if fresh, err = d.attachGrown(c.next); err != nil {
				return err
			}
			d.spray = fresh
			four, _ := d.heardIn(c.next)
			return d.sample(c.next, four.topology)
		},
		undo: func() error {
			err := c.closeSampler()
			four, _ := d.heardIn(c.old)
			if fresh == nil {
				return errors.Join(err, d.sample(c.old, four.topology))
			}
			again, err2 := d.attachGrown(c.old)
			if err2 != nil {
				return errors.Join(err, err2)
			}
			d.spray = again
			return errors.Join(err, d.retire(fresh), d.retire(former), d.sample(c.old, four.topology))
		},
		done: func() {
			if err := d.retire(former); err != nil {
				d.log.Warnf(event.Trouble, "the former program at %s: %v", d.place.uplink.Name, err)
			}
		},
	})
}

// retire closes a program. What it has counted stays counted. If that cannot be read, it is no
// reason to undo anything.
func (d *daemon) retire(s sprayer) error {
	if o, ok := s.(counter); ok {
		if last, err := o.Stats(); err == nil {
			d.counted = last.Plus(d.counted)
		}
	}
	return s.Close()
}

// counter is a sprayer that counts.
type counter interface {
	Stats() (hostprog.SprayStats, error)
}

// sprayed is what the program at the uplinks has counted, and those before it.
func (d *daemon) sprayed(by counter) (hostprog.SprayStats, error) {
	s, err := by.Stats()
	return s.Plus(d.counted), err
}

// attachGrown is attach of a program that begins with what is known of the fabrics.
func (d *daemon) attachGrown(c *Config) (sprayer, error) {
	four, six := d.heardIn(c)
	o := c.spray(d.place, four.topology, six.topology)
	o.StartCarried = func(rack netip.Prefix) bool {
		if rack.Addr().Is6() {
			return !course{six.topology, six.carriage}.plain(rack)
		}
		edge, ok := four.topology.RackAt(rack.Addr())
		return ok && four.carriage != nil && !four.carriage.Plain(edge)
	}
	s, err := d.kernel.spray(o)
	if err != nil {
		return nil, c.lines.Errorf("policy", "%w", err)
	}
	d.cuts = o.CutForwarded
	return s, nil
}

// useGrown has packets go by what is known of the fabrics.
func (c *change) useGrown(to *Config) error {
	four, six := c.heardIn(to)
	if !sameFabric(c.topology, four.topology) {
		if err := c.setReceiverTopology(four.topology); err != nil {
			return err
		}
		c.carriage = nil // of another fabric
	}
	if !sameFabric(c.six.topology, six.topology) {
		if err := c.setReceiverTopology6(to, six.topology); err != nil {
			return err
		}
		c.six = course{topology: six.topology}
		c.changes++
	}
	return c.goBy(to)
}
