package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/event"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/topology"
)

// way is one of several uplinks. Its Index is 0 while there is no such device.
type way struct {
	hostsetup.Uplink
	to, to6  netip.Addr // a bouncing switch of each family that it leads to
	gateway6 netip.Addr // the switch behind it, to IPv6
}

// dead reports whether nothing goes by the uplink.
func (w way) dead() bool { return w.Index == 0 || !w.Up || w.Dark }

// findUplinks finds the uplink, or all of several.
func (c *Config) findUplinks(p *place) error {
	devices, err := c.devices()
	if err != nil {
		return err
	}
	if devices == nil {
		name := ""
		if len(c.Uplink) > 0 {
			name = c.Uplink[0]
		}
		// A core's address is in none of our tables, whatever a crash has left.
		p.uplink, err = hostsetup.FindUplink(c.core(), name)
		return err
	}
	for i, name := range devices {
		w := way{Uplink: hostsetup.Uplink{Name: name}}
		if n, ok := bounceBy(c.fabric, i); ok {
			w.to = n.Addr
		}
		if w, err = w.look(); err != nil && !errors.Is(err, hostprog.ErrUplinkGone) {
			return err
		}
		p.ways = append(p.ways, w)
	}
	return p.choose()
}

// look looks at the device again, and for the switch behind it while that is not known. A
// device that is not there has no Index then.
func (w way) look() (way, error) {
	u, err := hostsetup.LookAtUplink(w.Uplink)
	if w.Uplink = u; err != nil {
		return w, err
	}
	if !w.dead() {
		w.Gateway, w.gateway6 = behind(w.to, w.Name, w.Gateway), behind(w.to6, w.Name, w.gateway6)
	}
	return w, nil
}

// behind returns the switch that the kernel's route to an address by a device leads to, unless
// one is known.
func behind(to netip.Addr, device string, known netip.Addr) netip.Addr {
	if known.IsValid() || !to.IsValid() {
		return known
	}
	u, _ := hostsetup.FindUplink(to, device)
	return u.Gateway
}

// choose makes one of several uplinks that for what needs only one.
func (p *place) choose() error {
	i := slices.IndexFunc(p.ways, func(w way) bool { return !w.dead() })
	if i < 0 {
		i = slices.IndexFunc(p.ways, func(w way) bool { return w.Index != 0 })
	}
	if i < 0 {
		return fmt.Errorf("there is none of the devices %v", p.names())
	}
	p.uplink = p.ways[i].Uplink
	return nil
}

// names are the devices of several uplinks.
func (p *place) names() (list []string) {
	for _, w := range p.ways {
		list = append(list, w.Name)
	}
	return list
}

// present are the same, "" for those that do not exist.
func (p *place) present() (list []string) {
	for _, w := range p.ways {
		if w.Index == 0 {
			w.Name = ""
		}
		list = append(list, w.Name)
	}
	return list
}

// all are the uplinks that exist.
func (p *place) all() (list []hostsetup.Uplink) {
	if len(p.ways) == 0 {
		return []hostsetup.Uplink{p.uplink}
	}
	for _, w := range p.ways {
		if w.Index != 0 {
			list = append(list, w.Uplink)
		}
	}
	return list
}

func (p *place) findStrictUplinks() {
	p.strict = nil
	for _, u := range p.all() {
		if u.Strict {
			p.strict = append(p.strict, u.Name)
		}
	}
}

// leastMTU is the least of the uplinks' MTUs.
func (p *place) leastMTU() int {
	least := p.uplink.MTU
	for _, u := range p.all() {
		least = min(least, u.MTU)
	}
	return least
}

// findWays6 finds the switches behind the uplinks, to IPv6.
func (p *place) findWays6(t *topology.Topology) error {
	for i := range p.ways {
		if n, ok := bounceBy(t, i); ok {
			p.ways[i].to6 = n.Addr
		}
		var err error
		if p.ways[i], err = p.ways[i].look(); err != nil && !errors.Is(err, hostprog.ErrUplinkGone) {
			return err
		}
	}
	return nil
}

// divide has the kernel's routes lead to all uplinks that are up. One of which the switch is
// not known yet waits while it is of others.
func (p *place) divide(o *hostsetup.Options) {
	known := slices.ContainsFunc(p.ways, func(w way) bool { return w.Index != 0 && w.Up && w.Gateway.IsValid() })
	first := true
	for _, w := range p.ways {
		switch {
		case w.Index == 0 || !w.Up || known && !w.Gateway.IsValid():
		case first:
			first = false
			o.Uplink, o.Gateway = w.Name, w.Gateway
			if o.Six != nil {
				o.Six.Gateway = w.gateway6
			}
		default:
			o.Others = append(o.Others, hostsetup.Way{Device: w.Name, Gateway: w.Gateway, Gateway6: w.gateway6})
		}
	}
}

// lookAtWays looks again at several uplinks. A device that has come back is one that all must
// be made anew for, as is one that is gone.
func (p *place) lookAtWays() error {
	ways := slices.Clone(p.ways)
	for i, w := range ways {
		now, err := w.look()
		switch {
		case w.Index == 0 && errors.Is(err, hostprog.ErrUplinkGone):
			continue
		case err != nil:
			return err
		case w.Index == 0:
			return fmt.Errorf("uplink %s is there again: %w", w.Name, errWay)
		}
		ways[i] = now
	}
	p.ways = ways
	return p.choose()
}

// errWay says that the devices of several uplinks are others than before.
var errWay = errors.New("all is made anew for it")

// sprayUplinks are the uplinks as the program that encapsulates is told of them.
func (p *place) sprayUplinks() (list []hostprog.Uplink) {
	for i, name := range p.present() {
		w := p.ways[i]
		list = append(list, hostprog.Uplink{Device: name, Gateway: w.Gateway, Gateway6: w.gateway6})
	}
	return list
}

// lit returns a fabric, nil for none, without the paths that begin with an uplink that is dead.
func (p *place) lit(t *topology.Topology) *topology.Topology {
	for i, w := range p.ways {
		if t != nil && w.dead() {
			t = t.Without(t.Beyond(i)...)
		}
	}
	return t
}

// tellFollower tells of both families, without the paths that begin with an uplink that is dead.
func (d *daemon) tellFollower(v views) {
	if v.fabric6 != nil {
		d.follower.heard(d.place.lit(v.fabric6))
	}
	d.follower.heard(d.place.lit(v.fabric))
}

// tellUplinks has packets take no path that begins with an uplink that is dead. Of the rest it
// tells what the switches have told last, or a configuration.
func (d *daemon) tellUplinks(c *Config) {
	if d.follower == nil || len(d.place.ways) == 0 {
		return
	}
	v := d.told
	if v.fabric == nil {
		v.fabric = c.fabric
	}
	if v.fabric6 == nil {
		v.fabric6 = c.six()
	}
	d.tellFollower(v)
}

// tellDead logs which uplinks have died or live again, and reports whether any has.
func (d *daemon) tellDead(was []way) (changed bool) {
	for i, w := range d.place.ways {
		if i >= len(was) || w.dead() == was[i].dead() {
			continue
		}
		changed = true
		if w.dead() {
			d.log.Warn(event.UplinkDown, "uplink "+w.Name+" is down: its paths are out of use", "uplink", w.Name)
		} else {
			d.log.Info(event.UplinkUp, "uplink "+w.Name+" is up again", "uplink", w.Name)
		}
	}
	return changed
}

// deviceTo returns the device by which the kernel's routes lead to an address, "" for none.
func deviceTo(a netip.Addr) string {
	u, _ := hostsetup.FindUplink(a, "")
	return u.Name
}
