package testbed

import (
	"testing"
	"time"
)

func TestIdlePercentBeside(t *testing.T) {
	var a CPU
	for _, c := range []struct {
		b      CPU
		polled time.Duration
		want   float64
	}{
		{CPU{idle: 50, total: 200}, 0, 25},
		{CPU{idle: 0, total: 200}, time.Second, 50},               // half of the time was polled away
		{CPU{idle: 0, total: 200, irq: 40}, time.Second, 30},      // of which interrupts may have taken 40 ticks
		{CPU{idle: 20, total: 200, irq: 90}, time.Second / 2, 10}, // all that was polled may have been interrupts
		{CPU{idle: 150, total: 200}, time.Second, 100},
		{CPU{}, time.Second, -1},
	} {
		if got := IdlePercentBeside(a, c.b, c.polled); got != c.want {
			t.Errorf("%+v, %v: %g; want %g", c.b, c.polled, got, c.want)
		}
	}
}
