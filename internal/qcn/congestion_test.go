package qcn

import (
	"math"
	"testing"
)

// The thesis's own queue: 100 KB, of which 20 % are sought, w of 1, F_bmax of 32, and a
// probability from 1 % that plateaus at 20 % (§5.3.3, §5.5.3).
var thesis = Parameters{Target: 20_000, Weight: 1, MinP: 0.01, MaxP: 0.2, Plateau: 32, Seed: 1}

// F_b = -(Q_off + w·Q_delta), by hand.
func TestCongestion_feedback(t *testing.T) {
	const unit = 3 * 20_000 / 63. // (1 + 2w)·Q_eq in 63 levels
	for _, c := range []struct {
		old, queue uint64
		over       float64 // -F_b in bytes
	}{
		{0, 0, -20_000}, {20_000, 20_000, 0}, // as it should be
		{20_000, 20_001, 2},                       // 1 too long, 1 more than before
		{30_000, 20_000, -10_000},                 // as long as it should be, and it falls
		{30_000, 25_000, 0},                       // too long, and it falls as fast
		{30_000, 26_000, 2000},                    // too long, and it falls
		{0, 15_000, 10_000},                       // short, and it grows fast
		{20_000, 40_000, 40_000},                  // twice the target
		{0, 40_000, 60_000},                       // the strongest of the standard
		{0, 100_000, 180_000}, {1, 1 << 33, 1e10}, // saturated
	} {
		p := NewCongestion(thesis)
		p.Old = c.old
		want := min(63, max(0, math.Ceil(c.over/unit)))
		if got := p.Arrive(c.queue); math.Abs(float64(got)-want) > 1 || (got == 0) != (c.over <= 0) || p.Old != c.queue {
			t.Errorf("queue %d after %d: level %d, want %g", c.queue, c.old, got, want)
		}
	}
}

// The probability rises from MinP at no congestion to MaxP at the plateau, and with the
// segments of a packet.
func TestCongestion_probability(t *testing.T) {
	for _, c := range []struct {
		level    uint32
		segments uint64
		want     float64
	}{{1, 1, 0.0159}, {16, 1, 0.105}, {31, 1, 0.194}, {32, 1, 0.2}, {63, 1, 0.2}, {16, 4, 0.42}, {63, 5, 1}, {63, 44, 1}} {
		p := NewCongestion(thesis)
		const packets = 100_000
		sampled := 0
		for range packets {
			if p.Sample(c.level, c.segments) {
				sampled++
			}
		}
		if got := float64(sampled) / packets; math.Abs(got-c.want) > 0.005 || p.Sampled != uint64(sampled) {
			t.Errorf("level %d, %d segments: %.4f of the packets, want %.4f", c.level, c.segments, got, c.want)
		}
	}
}
