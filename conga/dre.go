package conga

import "time"

// DRE estimates how busy a link is (discounting rate estimator, CONGA §3.2). X grows by
// the bytes sent and shrinks by a factor 1-alpha every tau times alpha. So at a steady
// rate R it is about R times tau.
//
// There is no timer: each call applies the ticks since the last one, with the same
// result. Times are since an arbitrary start; a time before the latest counts as the
// latest. A DRE is not safe for concurrent use. The zero value is a link that is never
// busy.
type DRE struct {
	x     float64       // bytes
	scale float64       // metric per byte
	tick  time.Duration // tau times alpha
	last  int64         // the number of the last tick taken into account
}

// alpha is not in the paper, which names its product with the period only: a
// sixteenth makes that 10 µs for the default tau.
const alpha = 1. / 16

// NewDRE returns the DRE of an idle link of so many bits a second. tau is how
// long it remembers, 160 µs in the paper; it should be longer than a round trip
// (CONGA §3.6), and is at least 16 ns.
func NewDRE(tau time.Duration, rateBits float64) DRE {
	tau = max(tau, 16)
	d := DRE{tick: time.Duration(float64(tau) * alpha)}
	if rateBits > 0 {
		d.scale = (MaxMetric + 1) / (rateBits / 8 * tau.Seconds())
	}
	return d
}

// Add adds bytes sent at now.
func (d *DRE) Add(bytes int, now time.Duration) {
	d.decay(now)
	d.x += float64(bytes)
}

// Metric is how busy the link is, in eighths of its rate rounded down, at most
// MaxMetric.
func (d *DRE) Metric(now time.Duration) uint8 {
	d.decay(now)
	return uint8(min(d.x*d.scale, MaxMetric))
}

func (d *DRE) decay(now time.Duration) {
	if d.tick == 0 {
		return
	}
	tick := int64(now / d.tick)
	ticks := tick - d.last
	if ticks <= 0 {
		return
	}
	d.last = tick
	const forgotten = 1 << 10 // nothing is left of any X
	if ticks >= forgotten {
		d.x = 0
		return
	}
	for part := 1 - alpha; ticks > 0; part *= part {
		if ticks&1 != 0 {
			d.x *= part
		}
		ticks >>= 1
	}
}
