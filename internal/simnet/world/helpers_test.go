package world

import (
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/stack"
)

// Within a pod of this fabric, there are four ways from rack to rack.
const fourPaths = "fat-tree:k=8"

var spines = []string{"a0.4", "a0.5", "a0.6", "a0.7"}

// tenGigabit is what links are like where a test does not say otherwise.
var tenGigabit = simnet.Config{RateBits: 10e9, Delay: 5 * time.Microsecond, QueueBytes: 250_000}

func newWorld(t testing.TB, c Config) *World {
	t.Helper()
	if c.Topology == "" {
		c.Topology = fourPaths
	}
	if c.Links.RateBits == 0 {
		c.Links = tenGigabit
	}
	w := New(c)
	t.Cleanup(w.Close)
	return w
}

func run(t testing.TB, w *World, limit time.Duration) {
	t.Helper()
	if err := w.Run(limit); err != nil {
		t.Fatalf("seed %d: %v", w.config.Seed, err)
	}
	if s := w.Network().Stats(); !conserved(s) {
		t.Errorf("seed %d: packets are not accounted for: %+v", w.config.Seed, s)
	}
}

func conserved(s simnet.Stats) bool {
	in, out := s.Injected+s.Duplicated, s.Delivered+uint64(s.InFlight)
	for _, n := range s.Dropped {
		out += n
	}
	return in == out
}

// usePolicy makes all hosts use one policy.
func usePolicy(name string) func(string, *stack.Config) {
	return func(_ string, c *stack.Config) { c.Policy = name }
}

func megabytes(n, underRace int64) int64 {
	if race {
		n = underRace
	}
	return n << 20
}
