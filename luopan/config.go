package luopan

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config says how a Table samples. Zero values mean the defaults.
type Config struct {
	// Samples is d, the number of paths of a destination in one round of probes, from 1
	// to MaxSamples. Default 2 (Luopan §4.3).
	Samples int
	// Expiry is how long the answers of a round are used before the next round. 0: it
	// follows the measured round trips, between MinExpiry, by default 40 µs (Luopan
	// §4.3), and MaxExpiry, by default 100 ms. So even a host that is slow or lied to
	// probes ten times a second.
	Expiry, MinExpiry, MaxExpiry time.Duration
	// Idle is the time without a choice after which a destination is forgotten. Default a
	// second.
	Idle time.Duration
	// MaxDestinations is the most destinations known at once, at most 65,536. Default
	// 16,384. A new destination replaces one that has long been idle.
	MaxDestinations int
	// Budget is the most probes a second to all destinations together. Default 20,000. If
	// it does not suffice, rounds begin later, in the order in which they are due.
	Budget float64
	// QueueUnit is how many bytes of queue switches count as one. Default 1,500.
	QueueUnit int
	// RateBits is the rate of a path's slowest link in bits per second. It converts
	// delays to bytes and gives this host's share of a path's traffic. Default 10e9. If
	// links are slower, samples count too little; if links are faster, too much.
	RateBits float64
	// SamplesOnly is the paper's rule (Luopan §3.2): flowcells follow the least congested
	// sample alone, and bytes sent since do not count. Without a sample they take random
	// paths.
	SamplesOnly bool
	// Turns has paths take turns, from which samples depart: see the package. It does not
	// go with SamplesOnly.
	Turns bool
	// Seed must be secret and different each time: who knows it can forge answers.
	Seed uint64
}

// MaxSamples is the most paths that are probed at a time. More than 9 gain
// nothing (Luopan §4.3).
const MaxSamples = 36

// Bounds of a Config.
const (
	maxDestinations = 1 << slotBits
	minTime         = time.Microsecond
	maxTime         = time.Hour
	minBudget       = 1
	maxBudget       = 1e7
	maxQueueUnit    = 1 << 20
	minRateBits     = 1e3
	maxRateBits     = 1e13
)

func (c Config) withDefaults() Config {
	c.Samples = cmp.Or(c.Samples, 2)
	c.MinExpiry = cmp.Or(c.MinExpiry, 40*time.Microsecond)
	c.MaxExpiry = cmp.Or(c.MaxExpiry, max(100*time.Millisecond, c.MinExpiry))
	c.Idle = cmp.Or(c.Idle, time.Second)
	c.MaxDestinations = cmp.Or(c.MaxDestinations, 16384)
	c.Budget = cmp.Or(c.Budget, 20000)
	c.QueueUnit = cmp.Or(c.QueueUnit, 1500)
	c.RateBits = cmp.Or(c.RateBits, 10e9)
	return c
}

func (c *Config) validate() error {
	between := func(d time.Duration) bool { return d >= minTime && d <= maxTime }
	switch {
	case c.Samples < 1 || c.Samples > MaxSamples:
		return fmt.Errorf("luopan: Samples is %d, must be from 1 to %d, or 0 for 2", c.Samples, MaxSamples)
	case c.Expiry != 0 && !between(c.Expiry):
		return fmt.Errorf("luopan: Expiry is %v, must be from %v to %v, or 0 to follow what is measured", c.Expiry, minTime, maxTime)
	case !between(c.MinExpiry):
		return fmt.Errorf("luopan: MinExpiry is %v, must be from %v to %v, or 0 for 40µs", c.MinExpiry, minTime, maxTime)
	case !between(c.MaxExpiry) || c.MaxExpiry < c.MinExpiry:
		return fmt.Errorf("luopan: MaxExpiry is %v, must be from MinExpiry, %v, to %v, or 0 for 100ms", c.MaxExpiry, c.MinExpiry, maxTime)
	case !between(c.Idle):
		return fmt.Errorf("luopan: Idle is %v, must be from %v to %v, or 0 for 1s", c.Idle, minTime, maxTime)
	case c.MaxDestinations < 1 || c.MaxDestinations > maxDestinations:
		return fmt.Errorf("luopan: MaxDestinations is %d, must be from 1 to %d, or 0 for 16384", c.MaxDestinations, maxDestinations)
	case !(c.Budget >= minBudget && c.Budget <= maxBudget): // NaN, too
		return fmt.Errorf("luopan: Budget is %v probes a second, must be from %v to %v, or 0 for 20000", c.Budget, minBudget, float64(maxBudget))
	case c.QueueUnit < 1 || c.QueueUnit > maxQueueUnit:
		return fmt.Errorf("luopan: QueueUnit is %d bytes, must be from 1 to %d, or 0 for 1500", c.QueueUnit, maxQueueUnit)
	case c.Turns && c.SamplesOnly:
		return errors.New("luopan: Turns and SamplesOnly are both set; set one of them")
	case !(c.RateBits >= minRateBits && c.RateBits <= maxRateBits):
		return fmt.Errorf("luopan: RateBits is %v, must be from %v to %v bits a second, or 0 for 1e+10", c.RateBits, minRateBits, maxRateBits)
	}
	return nil
}
