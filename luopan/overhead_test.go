package luopan

import (
	"math"
	"testing"
	"time"
)

// Luopan §3.1: 100 active racks, 38 bytes, 40 µs, 40 links of 10 Gbit/s and two
// samples take 0.38 %.
func TestOverhead_paper(t *testing.T) {
	for _, c := range []struct {
		active, bytes int
		expiry        time.Duration
		links         int
		bits          float64
		samples       int
		want          float64 // percent
	}{
		{100, 38, 40 * time.Microsecond, 40, 10e9, 2, 0.38},
		{100, 38, 40 * time.Microsecond, 40, 10e9, 4, 0.76},
		{100, 38, 80 * time.Microsecond, 40, 10e9, 2, 0.19},
		{1, 38, 40 * time.Microsecond, 1, 10e9, 2, 0.152},
		{0, 38, 40 * time.Microsecond, 40, 10e9, 2, 0},
	} {
		got := 100 * Overhead(c.active, c.bytes, c.expiry, c.links, c.bits, c.samples)
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v %%", c, got)
		}
	}
}

// What a Table sends is what the formula says, if a round trip takes no time.
func TestOverhead_isWhatIsSent(t *testing.T) {
	const racks, expiry, probe, lasting = 20, 40 * time.Microsecond, 38, 10 * time.Millisecond
	table := newTest(t, Config{Expiry: expiry, Budget: 5e6})
	paths := numbers(40)
	for now := time.Duration(0); now < lasting; now += 10 * time.Microsecond {
		for dst := range uint32(racks) {
			table.Choose(dst, dst, paths, now)
		}
		table.answerAll(now, func(p Probe) Answer { return Answer{Queue: 1, Meters: 1} })
	}
	sent := float64(table.Stats().Probes) * 8 * probe / (lasting.Seconds() * 40 * 10e9)
	want := Overhead(racks, probe, expiry, 40, 10e9, 2)
	if math.Abs(sent/want-1) > 0.01 {
		t.Errorf("%.4f %% of the links, by the formula %.4f %%", 100*sent, 100*want)
	}
}
