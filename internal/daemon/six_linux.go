package daemon

import (
	"math/rand/v2"
	"time"

	"weft/internal/lookout"
	"weft/internal/prober"
	"weft/liveness"
	"weft/topology"
)

// goBy6 makes IPv6 packets follow what is known about their paths. That never decides which
// encapsulation IPv4 has.
func (d *daemon) goBy6(c *Config) error {
	n, ok := d.heard[byIPv6]
	if !ok || d.spray == nil || !sameFabric(n.topology, c.six()) {
		return nil
	}
	if n.topology != d.six.topology {
		if err := d.spray.SetTopology(n.topology); err != nil {
			return err
		}
		if err := d.setReceiverTopology6(c, n.topology); err != nil {
			return err
		}
		d.six.topology = n.topology
		d.changes++
	}
	if n.carriage == d.six.carriage {
		return nil
	}
	now := course{n.topology, n.carriage}
	if err := d.carry(c, d.spray, d.topology, d.carriage, now); err != nil {
		return err
	}
	if d.receiver != nil {
		d.receiver.SetCarriage6(n.carriage)
	}
	for _, change := range n.carriage.Changes(d.six.carriage) {
		lookout.SayRacks(d.log, &change, n.topology, byIPv6, d.place.mtu-overhead6)
	}
	d.six = now
	return d.setNarrow(c, d.carriage, now)
}

// setReceiverTopology6 has the dataplane carry IPv6 through t, if it carries IPv6.
func (d *daemon) setReceiverTopology6(c *Config, t *topology.Topology) error {
	if d.receiver == nil || t == nil || c.diverted6() == nil {
		return nil
	}
	return d.receiver.SetTopology(t)
}

// probe6 begins to probe the paths of IPv6 packets.
func (f *hostFollower) probe6(c *Config, at place) error {
	o := c.liveness()
	var observe func(*liveness.Watcher, time.Duration)
	if f.seen != nil {
		observe = f.seen.observe6
	}
	opened, err := prober.Open(prober.Config{
		Journal:   f.paths.Journal(byIPv6),
		Interface: at.uplink.Name, Uplinks: at.present(), Address: c.address6(), Topology: c.six(),
		Carrier: c.carrier(), Gateway: at.gateway6, MTU: at.mtu, Require: c.Require, Observe: observe, Forwarded: at.forwarded.to(true),
		Interval: o.Interval, Multiplier: o.Multiplier, Budget: o.Budget, Floor: o.Floor, Seed: rand.Uint64(),
		Deliver: func(t *topology.Topology, c *liveness.Carriage) { f.tell(news{byIPv6, t, c}) },
	})
	if err != nil {
		return err
	}
	f.probes[byIPv6] = opened
	f.tell(news{byIPv6, opened.Topology(), opened.Carriage()})
	return nil
}
