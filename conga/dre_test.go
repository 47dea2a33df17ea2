package conga

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// ticking is the DRE as the paper has it: somebody comes by every period.
type ticking struct {
	x    float64
	next time.Duration
}

func (d *ticking) until(now, period time.Duration) {
	for ; d.next <= now; d.next += period {
		d.x -= d.x * alpha
	}
}

func TestDRE_isWhatTicksWouldMakeIt(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, tau := range []time.Duration{time.Microsecond, 160 * time.Microsecond, 20 * time.Millisecond} {
		const rate = 10e9
		d := NewDRE(tau, rate)
		period := tau / 16
		slow := ticking{next: period}
		now := time.Duration(0)
		highest := uint8(0)
		for i := range 20_000 {
			switch rng.IntN(100) {
			case 0:
				now += time.Duration(rng.Int64N(int64(40 * tau)))
			case 1: // exactly at a tick
				now = (now/period + 1) * period
			default:
				now += time.Duration(rng.Int64N(int64(period)))
			}
			bytes := rng.IntN(int(1.6*rate/8*period.Seconds()) + 1)
			slow.until(now, period)
			slow.x += float64(bytes)
			d.Add(bytes, now)
			if d.x > slow.x*(1+1e-9)+1e-9 || d.x < slow.x*(1-1e-9)-1e-9 {
				t.Fatalf("seed %d, tau %v, step %d at %v: %v, by ticks %v", seed, tau, i, now, d.x, slow.x)
			}
			m := d.Metric(now)
			want := slow.x / (rate / 8 * tau.Seconds()) * 8
			if math.Abs(want-math.Round(want)) > 1e-6 && m != uint8(min(want, 7)) {
				t.Fatalf("seed %d, tau %v, step %d: metric %d, by ticks %v", seed, tau, i, m, want)
			}
			highest = max(highest, m)
		}
		if highest != MaxMetric {
			t.Errorf("tau %v: the link was never busier than %d", tau, highest)
		}
	}
}

// At a steady rate R, X is about R times tau (CONGA §3.2), so the metric is the
// load in eighths.
func TestDRE_steadyLoad(t *testing.T) {
	const tau, rate = 160 * time.Microsecond, 10e9
	for _, c := range []struct {
		load float64
		want uint8
	}{{0, 0}, {0.06, 0}, {0.2, 1}, {0.32, 2}, {0.57, 4}, {0.7, 5}, {0.95, 7}, {1.5, 7}} {
		d := NewDRE(tau, rate)
		const packet = 1500
		now := time.Duration(0)
		if c.load > 0 {
			gap := time.Duration(packet * 8 / (rate * c.load) * 1e9)
			for ; now < 20*tau; now += gap {
				d.Add(packet, now)
			}
		}
		if got := d.Metric(now); got != c.want {
			t.Errorf("load %v: metric %d, want %d", c.load, got, c.want)
		}
	}
}

// It rises with (1-1/e) in tau and falls as fast.
func TestDRE_riseAndFall(t *testing.T) {
	const tau, rate = 1600 * time.Microsecond, 1e9
	d := NewDRE(tau, rate)
	full := rate / 8 * tau.Seconds()
	now := time.Duration(0)
	for ; now < tau; now += 10 * time.Microsecond {
		d.Add(rate/8/100_000, now)
	}
	if part := d.x / full; part < 0.58 || part > 0.68 {
		t.Errorf("after tau it has risen to %v", part)
	}
	d = NewDRE(tau, rate)
	d.Add(int(full), 0)
	if d.Metric(0) != 7 || d.Metric(tau/2) != 4 {
		t.Errorf("after half a tau %d", d.Metric(tau/2))
	}
	d.Metric(tau)
	if part := d.x / full; part < 0.32 || part > 0.38 {
		t.Errorf("after tau it has fallen to %v", part)
	}
	if d.Metric(time.Hour); d.x != 0 {
		t.Errorf("after an hour %v bytes", d.x)
	}
	// A clock that goes back changes nothing.
	d.Add(1000, time.Minute)
	if d.x != 1000 {
		t.Errorf("%v bytes", d.x)
	}
}

func TestDRE_zeroValueIsNeverBusy(t *testing.T) {
	var d DRE
	d.Add(1<<30, time.Second)
	if m := d.Metric(time.Second); m != 0 {
		t.Errorf("metric %d", m)
	}
}
