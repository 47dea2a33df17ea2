package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"weft/internal/event"
	"weft/internal/lookout"
	"weft/liveness"
	"weft/topology"
)

// hear has packets go by the latest news.
func (d *daemon) hear(ctx context.Context) {
	defer d.event()()
	if !d.working {
		return
	}
	by := d.hearAll()
	if by != d.config.encapsulation() {
		d.changeOver(ctx, by)
		return
	}
	if err := d.goBy(d.config); err != nil {
		d.takeAway(fmt.Sprintf("the paths cannot be changed: %v", err))
	}
}

// hearAll takes the latest news and returns the encapsulation that packets get from now on.
// This is the first one of the configuration that works towards any rack. While none works,
// it is the one in use.
func (d *daemon) hearAll() (by string) {
	if d.heard == nil {
		d.heard = make(map[string]news)
	}
	maps.Copy(d.heard, d.inbox.take())
	for _, e := range d.config.carried() {
		if n, ok := d.heard[e]; ok && n.carriage.Used() {
			return e
		}
	}
	return d.config.encapsulation()
}

// goBy makes packets follow what is known about the paths by a configuration's
// encapsulation.
func (d *daemon) goBy(c *Config) error {
	n, ok := d.heard[c.encapsulation()]
	if !ok {
		n, ok = d.heard[""]
	}
	if !ok {
		return nil
	}
	if n.topology != d.topology {
		was := d.topology
		if err := d.setTopology(n.topology); err != nil {
			return err
		}
		lookout.SayLinks(d.log, was, n.topology)
	}
	return errors.Join(d.setCarriage(c, n.carriage), d.goBy6(c))
}

// changeOver changes the encapsulation of packets: it makes all parts anew that carry them.
// Connections live on, plain for the moment.
func (d *daemon) changeOver(ctx context.Context, by string) {
	d.log.Info(event.Carrier, fmt.Sprintf("carried by %s from now on, no more by %s", by, d.config.encapsulation()), "carrier", by, "was", d.config.encapsulation())
	if err := d.takeDown(d.config.Drain); err != nil {
		d.log.Warnf(event.Trouble, "not all was undone: %v", err)
	}
	d.config = d.config.over(by)
	if err := d.bringUp(ctx); err != nil {
		d.takeDown(0)
		d.trouble = trouble{why: err.Error()}
		d.sayAway(err.Error())
	}
}

// setCarriage limits the encapsulation of packets to racks towards which it is proved, and
// to sizes that arrive there.
func (d *daemon) setCarriage(c *Config, to *liveness.Carriage) (err error) {
	if to == d.carriage {
		return nil
	}
	if d.spray != nil {
		err = d.carry(c, d.spray, d.topology, to, d.six)
	}
	if d.receiver != nil {
		d.receiver.SetCarriage(to)
	}
	if err == nil {
		err = d.setNarrow(c, to, d.six)
	}
	if err != nil {
		return err
	}
	for _, change := range to.Changes(d.carriage) {
		lookout.SayRacks(d.log, &change, d.topology, c.encapsulation(), d.place.mtu-c.overhead())
	}
	d.carriage = to
	return nil
}

// carry makes a program encapsulate packets to racks towards which that is proved. A new
// program encapsulates none.
func (d *daemon) carry(c *Config, s sprayer, t *topology.Topology, by *liveness.Carriage, six course) error {
	if !c.proves() {
		return nil
	}
	return s.SetPlain(func(rack netip.Prefix) bool {
		if rack.Addr().Is6() {
			return six.plain(rack)
		}
		edge, ok := t.RackAt(rack.Addr())
		return ok && by.Plain(edge)
	})
}

// setNarrow has the kernel send to each rack what arrives there.
func (d *daemon) setNarrow(c *Config, to *liveness.Carriage, six course) error {
	narrow := make(map[netip.Prefix]int)
	narrowed(narrow, d.topology, to, d.place.mtu-c.overhead(), false)
	if six.topology != nil {
		narrowed(narrow, six.topology, six.carriage, d.place.mtu-overhead6, true)
	}
	if maps.Equal(narrow, d.place.narrow) {
		return nil
	}
	former, err := c.plan(d.place)
	if err != nil {
		return err
	}
	d.place.narrow = narrow
	plan, err := c.plan(d.place)
	if err != nil {
		return err
	}
	if err := d.changeSetUp(former, plan); err != nil { // such as while the uplink is down
		d.complain(time.Now(), err.Error())
	}
	if s, ok := d.spray.(interface {
		SetNarrow(map[netip.Prefix]int) error
	}); ok {
		return s.SetNarrow(narrow)
	}
	return nil
}

// narrowed adds the prefixes of racks to which packets of the usual size do not arrive.
func narrowed(narrow map[netip.Prefix]int, t *topology.Topology, by *liveness.Carriage, usual int, six bool) {
	for _, edge := range by.Racks() {
		if mtu := by.MTU(edge); mtu > 0 && mtu < usual {
			for _, prefix := range t.RackPrefixesOf(edge, six) {
				narrow[prefix] = mtu
			}
		}
	}
}
