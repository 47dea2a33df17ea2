package papers

import (
	"math"
	"strconv"
)

// axis maps values to positions between two ends of a picture.
type axis struct {
	from, to  float64 // positions
	low, high float64 // values there; logarithms to base 10 if log
	log       bool
	ticks     []tick
}

type tick struct {
	At    float64
	Label string
}

// newAxis spans values and 0, or those above 0 if log.
func newAxis(from, to float64, values []float64, log bool) axis {
	a := axis{from: from, to: to}
	least, most := math.Inf(1), 0.0 // above 0
	for _, v := range values {
		if !finite(v) {
			continue
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	switch {
	case log && most > 0:
		a.log = true
		a.low, a.high = math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
		if a.low == a.high {
			a.high++
		}
	case a.low == a.high: // nothing to see
		a.high = 1
	}
	a.mark()
	return a
}

// mark places the ticks, and has the axis end at some.
func (a *axis) mark() {
	if a.log {
		every := math.Ceil((a.high - a.low) / 8)
		for e := a.low; e <= a.high; e += every {
			v := math.Pow(10, e)
			a.ticks = append(a.ticks, tick{a.at(v), tickLabel(v)})
		}
		return
	}
	step := niceStep(a.high - a.low)
	first, last := math.Floor(a.low/step+1e-9), math.Ceil(a.high/step-1e-9)
	a.low, a.high = first*step, last*step
	for i := first; i <= last; i++ {
		a.ticks = append(a.ticks, tick{a.at(i * step), tickLabel(i * step)})
	}
}

// at is where a value is; what is off the axis, or no number, is at an end.
func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	part := (v - a.low) / (a.high - a.low)
	if !(part > 0) {
		part = 0
	}
	return a.from + min(part, 1)*(a.to-a.from)
}

// niceStep is 1, 2 or 5 times a power of ten, of which about five make a span.
func niceStep(span float64) float64 {
	raw := span / 5
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func tickLabel(v float64) string {
	if math.Abs(v) >= 1e5 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
