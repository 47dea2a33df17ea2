package daemon

import (
	"errors"
	"math/rand/v2"
	"time"

	"weft/internal/lookout"
	"weft/internal/prober"
	"weft/liveness"
	"weft/topology"
	"weft/topoupdate/listen"
)

// hostFollower finds out what has failed: from the switches' messages, and in addition from
// probes. Either may be missing.
type hostFollower struct {
	updates *listen.Listener
	probes  map[string]*prober.Prober // by encapsulation; in parallel, so that the next is known to work
	used    string                    // of these, the one in use
	paths   *lookout.PathLog
	seen    observer // what the dataplane sees of packets; nil: nothing
	tell    func(news)
	started time.Time
}

// follow starts to follow, with t as the baseline. It calls tell with all news. Before it
// returns, it has told what is known at the beginning.
func follow(c *Config, at place, t *topology.Topology, r receiver, tell func(news)) (_ follower, err error) {
	f := &hostFollower{started: time.Now(), used: c.encapsulation(), seen: observerOf(r), tell: tell, paths: lookout.NewPathLog(at.log), probes: make(map[string]*prober.Prober)}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if c.Failures.Probes {
		for _, by := range c.carried() {
			if err := f.probe(c.over(by), at, t); err != nil {
				return nil, err
			}
		}
	}
	if c.Failures.Probes && c.six() != nil {
		if err := f.probe6(c, at); err != nil {
			return nil, err
		}
	}
	if c.Failures.Updates && t.Computed() {
		f.updates, err = listen.Open(listen.Config{
			Interface: at.uplink.Name, Topology: t, Address: at.address,
			Deliver: func(t *topology.Topology) { f.heard(t) },
			Keys:    c.Failures.keys(f.started), MaxAge: c.Failures.MaxAge, Gateway: at.uplink.Gateway, Floor: c.Failures.Floor,
		})
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// probe begins to probe by a configuration's encapsulation.
func (f *hostFollower) probe(c *Config, at place, t *topology.Topology) error {
	by, o := c.encapsulation(), c.liveness()
	p := prober.Config{
		Interface: at.uplink.Name, Uplinks: at.present(), Address: at.address, Topology: t,
		Carrier: c.carrier(), Gateway: at.uplink.Gateway, Beside: len(c.carried()) > 1, Idle: by != f.used,
		MTU: at.mtu, Require: c.Require, Journal: f.paths.Journal(by), Awake: len(c.Datagrams) > 0,
		Interval: o.Interval, Multiplier: o.Multiplier, Budget: o.Budget, Floor: o.Floor, Seed: rand.Uint64(),
		Deliver: func(t *topology.Topology, c *liveness.Carriage) { f.tell(news{by, t, c}) },
	}
	p.Forwarded = at.forwarded.to(false)
	if f.seen != nil && by == f.used {
		p.Observe = f.seen.observe
	}
	opened, err := prober.Open(p)
	if err != nil {
		return err
	}
	f.probes[by] = opened
	f.tell(news{by, opened.Topology(), opened.Carriage()})
	return nil
}

// observer tells what became of packets, by family.
type observer interface {
	observe(*liveness.Watcher, time.Duration)
	observe6(*liveness.Watcher, time.Duration)
}

// observerOf returns a receiver's dataplane as an observer; nil if it is none.
func observerOf(r receiver) observer {
	h, ok := r.(*hostReceiver)
	if !ok {
		return nil
	}
	o, _ := h.dataplane.(observer)
	return o
}

// heard takes what the switches say. Probes add to it what they find.
func (f *hostFollower) heard(t *topology.Topology) {
	if len(f.probes) == 0 {
		n := news{topology: t}
		if t.Node(0).Addr.Is6() {
			n.by = byIPv6
		}
		f.tell(n)
	}
	for _, p := range f.probes {
		if sameFabric(p.Topology(), t) {
			p.SetTopology(t) // of the fabric that it was opened with: nothing can be wrong
		}
	}
}

// rebase has the probes go on in other fabrics. What they have proved holds.
func (f *hostFollower) rebase(c *Config, at place) error {
	for by, p := range f.probes {
		if by != byIPv6 && !sameFabric(p.Topology(), c.fabric) {
			if err := p.SetTopology(c.fabric); err != nil {
				return err
			}
		}
	}
	if len(f.probes) == 0 {
		f.heard(c.fabric)
		if six := c.six(); six != nil {
			f.heard(six)
		}
		return nil
	}
	six, probed := c.six(), f.probes[byIPv6]
	if probed != nil && six != nil && probed.Self() == c.address6() {
		if sameFabric(probed.Topology(), six) {
			return nil
		}
		return probed.SetTopology(six)
	}
	if probed != nil {
		delete(f.probes, byIPv6)
		if err := probed.Close(); err != nil {
			return err
		}
	}
	if six == nil {
		return nil
	}
	return f.probe6(c, at)
}

// setKeys takes over the keys of a configuration.
func (f *hostFollower) setKeys(c *Config) error {
	if f.updates == nil {
		return nil
	}
	return f.updates.SetKeys(c.Failures.keys(f.started))
}

// refused says why nothing that the switches say is believed.
func (f *hostFollower) refused() string {
	if f.updates == nil {
		return ""
	}
	return f.updates.Refused()
}

// Close ends the follower. After it nothing more is told.
func (f *hostFollower) Close() (err error) {
	if f.updates != nil {
		err = f.updates.Close()
	}
	for _, p := range f.probes {
		err = errors.Join(err, p.Close())
	}
	return err
}

// updated says what is known of the switches' messages; nil if nobody listens.
func (f *hostFollower) updated() any {
	if f.updates == nil {
		return nil
	}
	return f.updates.Status()
}

// probing returns what may be asked for the state of paths.
func (f *hostFollower) probing() (p probing) {
	if by := f.probes[f.used]; by != nil {
		p.used = by
	}
	if by := f.probes[byIPv6]; by != nil {
		p.six = by
	}
	return p
}
