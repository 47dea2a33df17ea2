package conga

import (
	"fmt"
	"math"
	"time"
)

// Config configures a Table. Zero values mean the defaults.
type Config struct {
	// Tau is how long a DRE remembers, from MinTau to MaxTau. Default: 160 µs
	// (CONGA §3.6), for links of 10 Gbit/s; it should be longer than a round trip.
	Tau time.Duration
	// Age is how long a report has full weight, from Tau to MaxAge. Default: 10 ms (CONGA
	// §3.3), or Tau if that is longer.
	Age time.Duration
	// RateBits is the rate, in bits a second, of the fabric links by which this host's
	// packets leave their rack. Default: 10e9.
	RateBits float64
	// MaxDestinations bounds the racks that each of the two tables remembers, from 1 to
	// 1<<20. Default: 16,384.
	MaxDestinations int
	// Seed of the random choice among equal paths.
	Seed uint64
}

// Bounds of Config.
const (
	MinTau = time.Microsecond
	MaxTau = 10 * time.Second
	MaxAge = 10 * time.Minute
)

// WithDefaults returns c with the defaults in place of zero values. An error names the field
// that is wrong.
func (c Config) WithDefaults() (Config, error) {
	def(&c.Tau, 160*time.Microsecond)
	def(&c.Age, max(10*time.Millisecond, c.Tau))
	def(&c.RateBits, 10e9)
	def(&c.MaxDestinations, 16384)
	switch {
	case c.Tau < MinTau || c.Tau > MaxTau:
		return c, fmt.Errorf("conga: Tau is %v: give %v to %v", c.Tau, MinTau, MaxTau)
	case c.Age < c.Tau || c.Age > MaxAge:
		return c, fmt.Errorf("conga: Age is %v: give Tau, %v, to %v", c.Age, c.Tau, MaxAge)
	case !(c.RateBits > 0) || math.IsInf(c.RateBits, 0): // NaN, too
		return c, fmt.Errorf("conga: RateBits is %v: give the rate of a fabric link in bits a second", c.RateBits)
	case c.MaxDestinations < 1 || c.MaxDestinations > 1<<20:
		return c, fmt.Errorf("conga: MaxDestinations is %d: give 1 to %d", c.MaxDestinations, 1<<20)
	}
	return c, nil
}

func def[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
