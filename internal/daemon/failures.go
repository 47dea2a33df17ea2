package daemon

import (
	"reflect"
	"time"

	"weft/internal/config"
	"weft/liveness"
	"weft/topology"
	"weft/topoupdate"
)

// Failures is the section "failures": how the daemon learns what has failed.
type Failures struct {
	Updates        bool               `yaml:"updates"`
	MaxAge         time.Duration      `yaml:"max_age"`
	Keys           []config.UpdateKey `yaml:"keys"`
	AcceptUnsigned bool               `yaml:"accept_unsigned"`
	Probes         bool               `yaml:"probes"`
	Interval       time.Duration      `yaml:"interval"`
	Multiplier     int                `yaml:"multiplier"`
	Budget         int                `yaml:"budget"`
	Floor          float64            `yaml:"floor"`
}

// liveness returns the watcher's part for a host.
func (c *Config) liveness() liveness.Config {
	f := c.Failures
	return liveness.Config{Topology: c.fabric, Interval: f.Interval, Multiplier: f.Multiplier, Budget: float64(f.Budget), Floor: f.Floor}
}

func (c *Config) checkFailures() error {
	f := &c.Failures
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"max_age", f.MaxAge}, {"interval", f.Interval}} {
		if d.value <= 0 {
			return c.lines.Errorf("failures."+d.key, "is %v, must be more than 0", d.value)
		}
	}
	if err := c.between("failures.multiplier", f.Multiplier, 1, 16); err != nil {
		return err
	}
	if err := c.between("failures.budget", f.Budget, 1, 100_000); err != nil {
		return err
	}
	if !(f.Floor > 0 && f.Floor <= 1) {
		return c.lines.Errorf("failures.floor", "is %v, must be above 0, and 1 at most", f.Floor)
	}
	if c.tunnels() {
		return nil // which has no topology
	}
	l := c.liveness()
	if l.Topology == nil { // any will do for what is checked
		l.Topology, _ = topology.FatTree(topology.MinFatTreeK)
	}
	if _, err := liveness.New(l); err != nil {
		return c.lines.Errorf("failures", "%w", err)
	}
	return config.ReadUpdateKeys(f.Keys, c.lines, "failures.keys", keyReader)
}

// keys returns the keys on a clock that begins at start.
func (f *Failures) keys(start time.Time) topoupdate.Keys {
	return config.UpdateKeys(f.Keys, f.AcceptUnsigned, start)
}

// sameButKeys reports whether two differ in no more than keys.
func (f Failures) sameButKeys(g Failures) bool {
	f.Keys, f.AcceptUnsigned = g.Keys, g.AcceptUnsigned
	return reflect.DeepEqual(f, g)
}
