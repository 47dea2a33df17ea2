package balance

import "time"

// DRE estimates how busy an uplink is (CONGA §3.2), in whole numbers, as struct dre of
// fabric/bpf/leaf.c does. Package conga has it in floating point.
type DRE struct {
	Lock   uint32 // the kernel's
	_      uint32
	Tick   uint64 // ns
	Target uint64 // X at the full rate; 0: that is not known, and the uplink never busy
	X      uint64 // bytes in 2⁻⁸
	Ticked uint64 // the number of the tick that X was right at
}

const (
	dreTicks     = 16            // in tau
	dreFactor    = 1<<16 - 1<<12 // 1 - α in 2⁻¹⁶, α being 1/16
	dreForgotten = 256           // ticks after which nothing is left
	dreScale     = 256
	dreLevels    = 8 // 3 bits, CONGA's Q
	dreMost      = 1 << 47
)

// NewDRE returns the estimate of an idle uplink of a rate in bit/s, which remembers tau. A
// rate of 0 is one that is not known.
func NewDRE(tau time.Duration, rateBits float64) DRE {
	return DRE{Tick: max(1, uint64(tau)/dreTicks), Target: uint64(rateBits / 8 * tau.Seconds() * dreScale)}
}

// Add adds bytes sent at now, in ns.
func (d *DRE) Add(bytes uint32, now uint64) {
	if d.Target == 0 {
		return
	}
	tick := now / d.Tick
	d.X = min(decayed(d.X, tick-d.Ticked)+uint64(bytes)*dreScale, dreMost)
	if int64(tick-d.Ticked) > 0 {
		d.Ticked = tick
	}
}

// Metric is how busy the uplink is, in eighths of its rate rounded down, at most 7.
func (d *DRE) Metric(now uint64) uint8 {
	if d.Target == 0 {
		return 0
	}
	return uint8(min(decayed(d.X, now/d.Tick-d.Ticked)*dreLevels/d.Target, dreLevels-1))
}

// decayed is X·(1-α) of every tick, by squaring.
func decayed(x, ticks uint64) uint64 {
	switch {
	case int64(ticks) <= 0:
		return x
	case ticks >= dreForgotten:
		return 0
	}
	for factor := uint64(dreFactor); ticks > 0; ticks >>= 1 {
		if ticks&1 != 0 {
			x = x * factor >> 16
		}
		factor = factor * factor >> 16
	}
	return x
}
