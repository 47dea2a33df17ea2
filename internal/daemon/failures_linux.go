package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"weft/internal/prober"
	"weft/liveness"
	"weft/topology"
	"weft/topoupdate/listen"
)

// follower has the paths follow what becomes known of failures: what the switches
// say, and on top of it what probes find. Either may be missing.
type follower struct {
	updates *listen.Listener
	probes  *prober.Prober
	started time.Time
	carried string // by what, in which fabric

	mu      sync.Mutex
	deliver func(*topology.Topology) error
	last    *topology.Topology
	err     error // of the latest delivery
	count   uint64
}

// follow begins to follow, with the configuration's topology as the baseline.
func (d *daemon) follow(c *Config) (*follower, error) {
	f := &follower{last: c.fabric, deliver: d.setTopology, started: time.Now(),
		carried: fmt.Sprintf("%v through %v", c.carrier(), c.fabric)}
	if c.tunnels() {
		return f, nil
	}
	var err error
	if c.Failures.Probes {
		o := c.liveness()
		var observe func(*liveness.Watcher, time.Duration)
		if p, ok := d.dataplane.(interface {
			observe(*liveness.Watcher, time.Duration)
		}); ok {
			observe = p.observe
		}
		f.probes, err = prober.Open(prober.Config{
			Interface: d.place.uplink.Name, Address: d.place.address, Topology: c.fabric,
			Carrier: c.carrier(), Gateway: d.place.uplink.Gateway,
			Interval: o.Interval, Multiplier: o.Multiplier, Budget: o.Budget, Floor: o.Floor,
			Seed: rand.Uint64(), Observe: observe, Deliver: f.set,
		})
		if err != nil {
			return nil, err
		}
	}
	if c.Failures.Updates {
		heard := f.set
		if f.probes != nil {
			heard = func(t *topology.Topology) { f.note(f.probes.SetTopology(t)) }
		}
		f.updates, err = listen.Open(listen.Config{
			Interface: d.place.uplink.Name, Topology: c.fabric, Address: d.place.address, Deliver: heard,
			Keys: c.Failures.keys(f.started), MaxAge: c.Failures.MaxAge,
			Gateway: d.place.uplink.Gateway, Floor: c.Failures.Floor,
		})
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// set has later packets go by a topology.
func (f *follower) set(t *topology.Topology) {
	err := f.deliver(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.err = t, err
	f.count++
}

func (f *follower) note(err error) {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
	}
}

// keysOf takes over the keys of a configuration.
func (f *follower) keysOf(c *Config) error {
	if f.updates == nil {
		return nil
	}
	return f.updates.SetKeys(c.Failures.keys(f.started))
}

// current is the topology that packets go by.
func (f *follower) current() *topology.Topology {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// close waits until nothing more is delivered.
func (f *follower) close() (err error) {
	if f.updates != nil {
		err = f.updates.Close()
	}
	if f.probes != nil {
		err = errors.Join(err, f.probes.Close())
	}
	return err
}

// setTopology has later packets go by a topology.
func (d *daemon) setTopology(t *topology.Topology) (err error) {
	d.paths.Lock()
	defer d.paths.Unlock()
	if d.offload != nil {
		err = d.offload.SetTopology(t)
	}
	if d.sampler != nil {
		d.sampler.SetTopology(t)
	}
	if d.dataplane != nil {
		err = errors.Join(err, d.dataplane.SetTopology(t))
	}
	return err
}

// hint says what may be wrong if nothing has ever come home: then more likely
// switches were never set up than all have failed.
func (f *follower) hint() string {
	if f == nil || f.probes == nil {
		return ""
	}
	if w := f.probes.Stats().Watcher; w.Answered > 0 || w.Muted == 0 {
		return ""
	}
	return "no probe has ever come home: do the switches carry " + f.carried + "? weft plan prints what each needs"
}

// warn prints that once, when there is something to say.
func (d *daemon) warn() {
	if d.warned {
		return
	}
	if hint := d.follower.hint(); hint != "" {
		d.warned = true
		d.log.Print(hint)
	}
}

// maxPathStatus bounds the paths in a status.
const maxPathStatus = 1000

// status describes what is known. Of the paths it has those that something is
// wrong with, and the bouncing switches.
func (f *follower) status() *FailureStatus {
	f.mu.Lock()
	s := &FailureStatus{Down: []string{}, Changes: f.count}
	if f.err != nil {
		s.Error = f.err.Error()
	}
	t := f.last
	f.mu.Unlock()
	if t == nil {
		return nil // a tunnel's
	}
	for _, l := range t.Down() {
		s.Down = append(s.Down, t.LinkName(l))
	}
	if f.updates != nil {
		s.Updates = f.updates.Status()
	}
	if f.probes == nil {
		return s
	}
	s.Probes, s.Hint = f.probes.Stats(), f.hint()
	for _, p := range f.probes.Paths() {
		if len(s.Paths) == maxPathStatus {
			break
		}
		if p.State == liveness.Up && p.Dst != f.probes.Self() {
			continue
		}
		s.Paths = append(s.Paths, PathStatus{To: t.Node(p.Dst).Name, Via: p.Via.String(), State: string(p.State),
			Why: p.Why, RTT: float64(p.RTT.Microseconds()) / 1000, Loss: p.Loss})
	}
	return s
}
