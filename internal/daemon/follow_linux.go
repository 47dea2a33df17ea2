package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"weft/internal/prober"
	"weft/liveness"
	"weft/topology"
	"weft/topoupdate/listen"
)

// hostFollower finds out what has failed: from what the switches say, and on top of
// it from what probes find. Either may be missing.
type hostFollower struct {
	updates *listen.Listener
	probes  *prober.Prober
	started time.Time
	carried string // by what, in which fabric
}

// follow begins to follow, with t as the baseline; tell is called with all news.
func follow(c *Config, at place, t *topology.Topology, r receiver, tell func(news)) (_ follower, err error) {
	f := &hostFollower{started: time.Now(), carried: fmt.Sprintf("%v through %v", c.carrier(), c.fabric)}
	deliver := func(t *topology.Topology) { tell(news{topology: t}) }
	if c.Failures.Probes {
		o := c.liveness()
		var observe func(*liveness.Watcher, time.Duration)
		if r, ok := r.(*hostReceiver); ok {
			if p, ok := r.dataplane.(interface {
				observe(*liveness.Watcher, time.Duration)
			}); ok {
				observe = p.observe
			}
		}
		f.probes, err = prober.Open(prober.Config{
			Interface: at.uplink.Name, Address: at.address, Topology: t,
			Carrier: c.carrier(), Gateway: at.uplink.Gateway,
			Interval: o.Interval, Multiplier: o.Multiplier, Budget: o.Budget, Floor: o.Floor,
			Seed: rand.Uint64(), Observe: observe, Deliver: deliver,
		})
		if err != nil {
			return nil, err
		}
	}
	if c.Failures.Updates {
		heard := deliver
		if f.probes != nil {
			// The fabric is the one it was opened with: nothing can be wrong.
			heard = func(t *topology.Topology) { f.probes.SetTopology(t) }
		}
		f.updates, err = listen.Open(listen.Config{
			Interface: at.uplink.Name, Topology: t, Address: at.address, Deliver: heard,
			Keys: c.Failures.keys(f.started), MaxAge: c.Failures.MaxAge,
		})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// setKeys takes over the keys of a configuration.
func (f *hostFollower) setKeys(c *Config) error {
	if f.updates == nil {
		return nil
	}
	return f.updates.SetKeys(c.Failures.keys(f.started))
}

// Close waits until nothing more is told.
func (f *hostFollower) Close() (err error) {
	if f.updates != nil {
		err = f.updates.Close()
	}
	if f.probes != nil {
		err = errors.Join(err, f.probes.Close())
	}
	return err
}

// hint says what may be wrong if nothing has ever come home: then more likely
// switches were never set up than all have failed.
func (f *hostFollower) hint() string {
	if f.probes == nil {
		return ""
	}
	if w := f.probes.Stats().Watcher; w.Answered > 0 || w.Muted == 0 {
		return ""
	}
	return "no probe has ever come home: do the switches carry " + f.carried + "? weft plan prints what each needs"
}

// maxPathStatus bounds the paths in a status.
const maxPathStatus = 1000

// status describes what is known. Of the paths it has those that something is
// wrong with, and the bouncing switches.
func (f *hostFollower) status(t *topology.Topology) *FailureStatus {
	s := &FailureStatus{}
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
