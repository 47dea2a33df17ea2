package backlog

import (
	"fmt"
	"math"
	"math/bits"
)

// Config of a Table. Zero values mean the defaults.
type Config struct {
	// Samples is d, how many paths are picked at random for a choice, from 1 to
	// MaxSamples. Default: 2.
	Samples int
	// Memory is m, how many of the least loaded paths are remembered for a rack,
	// from 1 to MaxMemory. Default: 1.
	Memory int
	// RateBits is the rate of this host's uplink in bits a second. Default: 10e9.
	RateBits float64
	// MaxDestinations bounds the racks for which something is remembered, from 1
	// to 1<<20; it is rounded up to a power of two. Default: 16,384.
	MaxDestinations int
	// Seed of what is picked at random.
	Seed uint64
}

// Bounds of Config and Table.
const (
	MaxSamples = 36
	MaxMemory  = 4
	MaxPaths   = 1 << 16
)

func (c Config) withDefaults() (Config, error) {
	def(&c.Samples, 2)
	def(&c.Memory, 1)
	def(&c.RateBits, 10e9)
	def(&c.MaxDestinations, 16384)
	switch {
	case c.Samples < 1 || c.Samples > MaxSamples:
		return c, fmt.Errorf("backlog: Samples is %d: give 1 to %d", c.Samples, MaxSamples)
	case c.Memory < 1 || c.Memory > MaxMemory:
		return c, fmt.Errorf("backlog: Memory is %d: give 1 to %d", c.Memory, MaxMemory)
	case !(c.RateBits > 0) || math.IsInf(c.RateBits, 0): // NaN, too
		return c, fmt.Errorf("backlog: RateBits is %v: give the rate of the host's uplink in bits a second", c.RateBits)
	case c.MaxDestinations < 1 || c.MaxDestinations > 1<<20:
		return c, fmt.Errorf("backlog: MaxDestinations is %d: give 1 to %d", c.MaxDestinations, 1<<20)
	}
	c.MaxDestinations = 1 << bits.Len(uint(c.MaxDestinations-1))
	return c, nil
}

func def[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
