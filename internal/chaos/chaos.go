// Package chaos makes up failures: from a seed, a sequence of links and
// switches that fail and heal, the same for a lab of namespaces and for a
// simulation. It is pure.
package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weft/topology"
)

// Mode is how something fails.
type Mode string

// The modes mean what they mean to a lab.
const (
	Loud       Mode = "loud"        // both ends see it at once
	Silent     Mode = "silent"      // everything is dropped, nobody is told
	SilentData Mode = "silent-data" // data is dropped, the switches' messages pass
)

// Event is one change of one link or switch.
type Event struct {
	At     time.Duration     // since the start
	Target string            // a link, LOWER-UPPER, or a switch, by its name
	Links  []topology.LinkID // that the target stands for
	Mode   Mode              // how it fails; "" when it heals
}

// Heals reports whether the event ends a failure.
func (e Event) Heals() bool { return e.Mode == "" }

func (e Event) String() string {
	if e.Heals() {
		return fmt.Sprintf("%9.3f s  heal  %s", e.At.Seconds(), e.Target)
	}
	return fmt.Sprintf("%9.3f s  fail  %s (%s)", e.At.Seconds(), e.Target, e.Mode)
}

// Config says what may happen. Zero values are the defaults.
type Config struct {
	Topology *topology.Topology
	Seed     uint64
	Duration time.Duration // the last event, a healing, is no later than this

	Interval time.Duration // mean time between two failures; 0 is 500 ms
	Outage   time.Duration // mean duration of a failure; 0 is 1 s
	AtOnce   int           // most targets that have failed at a time; 0 is 2
	Switches float64       // share of failures that hit a whole switch, 0 to 1
	Silences float64       // share of failures that are silent, 0 to 1
	Flaps    float64       // share of failures that flap, 0 to 1: fail and heal a few times in quick succession
}

// Defaults of the mix, which New leaves as they are given: a share of 0 is one.
const (
	DefaultSwitches = 0.2
	DefaultSilences = 0.4
	DefaultFlaps    = 0.2
)

const (
	defaultInterval = 500 * time.Millisecond
	defaultOutage   = time.Second
	defaultAtOnce   = 2
	// A flap's phases are this share of an outage.
	flapShare = 0.05
	maxFlaps  = 5
)

func (c Config) complete() (Config, error) {
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	c.Outage = cmp.Or(c.Outage, defaultOutage)
	c.AtOnce = cmp.Or(c.AtOnce, defaultAtOnce)
	switch {
	case c.Topology == nil:
		return c, fmt.Errorf("chaos: Topology is missing")
	case c.Duration <= 0 || c.Interval <= 0 || c.Outage <= 0:
		return c, fmt.Errorf("chaos: duration %v, interval %v and outage %v must be above 0", c.Duration, c.Interval, c.Outage)
	case c.AtOnce < 1:
		return c, fmt.Errorf("chaos: at most %d failures at once; must be 1 or more", c.AtOnce)
	}
	for name, share := range map[string]float64{"switches": c.Switches, "silences": c.Silences, "flaps": c.Flaps} {
		if !(share >= 0 && share <= 1) {
			return c, fmt.Errorf("chaos: share of %s is %g; must be within 0 and 1", name, share)
		}
	}
	return c, nil
}

// Sequence returns the events in the order of their times. It depends on
// nothing but the configuration. At no moment is a pair of racks without a
// live path, nor are more than AtOnce targets failed, and none fails that is
// failed already; hosts' own links are left alone. In the end everything has
// healed.
//
// Checking that no pair is cut off takes time in proportion to the square of
// the number of racks, for every failure.
func Sequence(c Config) ([]Event, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	g := newGenerator(c)
	for at := g.wait(c.Interval); at < c.Duration; at += g.wait(c.Interval) {
		g.failAt(at)
	}
	slices.SortStableFunc(g.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return g.events, nil
}
