package daemon

import (
	"context"
	"fmt"
	"net/netip"
)

// reload reads the configuration again. One that is wrong, or that needs a
// restart, changes nothing.
func (d *daemon) reload(ctx context.Context) {
	d.notify.Reloading()
	err := d.change(ctx)
	if err != nil {
		d.log.Printf("reload refused, all stays as it is: %v", err)
	} else {
		d.log.Printf("reloaded: %s", d.summary())
	}
	d.notify.Ready(d.summary())
}

func (d *daemon) change(ctx context.Context) error {
	next, err := Load(d.file)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.config.canBecome(next); err != nil {
		return err
	}
	old := d.config
	if err := d.adopt(ctx, next); err != nil {
		d.config = next // as far as can be told
		if undo := d.adopt(ctx, old); undo != nil {
			err = fmt.Errorf("%w (and going back: %w; restart)", err, undo)
		}
		return err
	}
	d.reloads++
	return nil
}

// adopt changes over to a configuration: routes first, so that nothing is sprayed
// by what is not there yet.
func (d *daemon) adopt(ctx context.Context, c *Config) error {
	if err := d.stillThere(ctx, c); err != nil {
		return err
	}
	plan, err := c.plan(d.place)
	if err != nil {
		return err
	}
	if err := d.setup.Update(plan); err != nil {
		return err
	}
	sameFabric := c.Topology == d.config.Topology
	samePolicy := c.Policy == d.config.Policy && c.policyOptions() == d.config.policyOptions()
	t := d.follower.current()
	anew := !sameFabric || !c.Failures.sameButKeys(d.config.Failures)
	if anew {
		if err := d.follower.close(); err != nil {
			return err
		}
		t = c.fabric
	} else if err := d.follower.keysOf(c); err != nil {
		return c.lines.Errorf("failures.keys", "%w", err)
	}
	if !c.tunnels() && (d.offload == nil || !sameFabric || !samePolicy) {
		if err := d.spray(c, t); err != nil {
			return err
		}
	}
	if d.dataplane != nil && !samePolicy {
		if err := d.dataplane.SetPolicy(c.Policy, c.policyOptions()); err != nil {
			return c.lines.Errorf("policy", "%w", err)
		}
	}
	if c.diverts() != d.config.diverts() {
		change := d.setup.Undivert
		if c.diverts() {
			change = d.setup.Divert
		}
		if err := change(); err != nil {
			return err
		}
	}
	if anew && !c.tunnels() {
		if err := d.setTopology(t); err != nil {
			return c.lines.Errorf("topology", "%w", err)
		}
		f, err := d.follow(c)
		if err != nil {
			return err
		}
		d.follower = f
	}
	d.config = c
	return nil
}

// stillThere makes sure that what was found out at the start holds in another
// topology, too. A tunnel's peers cannot change.
func (d *daemon) stillThere(ctx context.Context, c *Config) error {
	if c.tunnels() {
		return nil
	}
	at, err := c.find(ctx)
	if err != nil {
		return err
	}
	if at.address != d.place.address || at.uplink.Name != d.place.uplink.Name {
		return fmt.Errorf("this host is now %s by %s, and was %s by %s; restart the daemon",
			at.address, at.uplink.Name, d.place.address, d.place.uplink.Name)
	}
	return nil
}

func addresses(p place) []netip.Addr { return []netip.Addr{p.address} }
