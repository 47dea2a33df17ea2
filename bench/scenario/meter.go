package scenario

import (
	"time"

	"weft/internal/simnet/world"
)

// meter notes how much has been received so far, at every tick.
type meter struct {
	tick   time.Duration
	flows  []*world.Flow
	series []int64 // bytes; the first at time 0
}

// newMeter begins to note in w, in which no time has passed.
func newMeter(w *world.World, tick time.Duration, flows ...*world.Flow) *meter {
	m := &meter{tick: tick, flows: flows}
	var note func()
	note = func() {
		m.series = append(m.series, m.received())
		w.At(w.Now()+tick, note)
	}
	note()
	return m
}

func (m *meter) received() (sum int64) {
	for _, f := range m.flows {
		sum += f.Received
	}
	return sum
}

// rate returns the bits per second between two times, both multiples of the
// tick and past.
func (m *meter) rate(from, to time.Duration) float64 {
	return float64(m.series[to/m.tick]-m.series[from/m.tick]) * 8 / (to - from).Seconds()
}

// reaches returns the end of the first tick from a time on in which the rate is
// at least so many bits per second, false if there is none.
func (m *meter) reaches(rate float64, from time.Duration) (time.Duration, bool) {
	return m.first(from, func(r float64) bool { return r >= rate })
}

// recovers returns the end of the first tick in which the rate is at least so
// many bits per second after it was less, both from a time on.
func (m *meter) recovers(rate float64, from time.Duration) (time.Duration, bool) {
	below, ok := m.first(from, func(r float64) bool { return r < rate })
	if !ok {
		return 0, false
	}
	return m.reaches(rate, below)
}

func (m *meter) first(from time.Duration, is func(rate float64) bool) (time.Duration, bool) {
	for at := from + m.tick; int(at/m.tick) < len(m.series); at += m.tick {
		if is(m.rate(at-m.tick, at)) {
			return at, true
		}
	}
	return 0, false
}

// longestGap returns the longest time, in whole ticks, in which nothing was
// received.
func (m *meter) longestGap() (longest time.Duration) {
	gap := time.Duration(0)
	for i := 1; i < len(m.series); i++ {
		gap += m.tick
		if m.series[i] > m.series[i-1] {
			gap = 0
		}
		longest = max(longest, gap)
	}
	return longest
}
