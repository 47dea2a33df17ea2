package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The measures of a CDF chart, in the units of its viewBox.
const (
	cdfLeft, cdfRight = 44.0, 450.0
	cdfTop, cdfBottom = 12.0, 250.0
	// cdfSteps is how many steps a line has at most: more cannot be seen.
	cdfSteps = 250
)

// cdf is a chart of cumulative distributions, one line per row.
type cdf struct {
	Title, Axis string
	X, Y        []tick
	Lines       []cdfLine
}

type cdfLine struct {
	Series series
	Name   string
	Path   string // an SVG path
}

// cdfs makes the charts for which there are samples.
func cdfs(r Report) (all []cdf) {
	hosts := func(row Row) []float64 { return row.PerHostMbit }
	if c, ok := newCDF(r.Rows, hosts, linearAxis); ok {
		c.Title, c.Axis = "Goodput of the hosts", "Mbit/s"
		all = append(all, c)
	}
	rtt := func(row Row) []float64 { return row.RTTMicros }
	if c, ok := newCDF(r.Rows, rtt, logAxis); ok {
		c.Title, c.Axis = "Round-trip time of small requests", "logarithmic"
		all = append(all, c)
	}
	return all
}

// axis maps values to positions, given the range of all samples.
type axis func(low, high float64) (at func(float64) float64, ticks []tick)

func newCDF(rows []Row, samples func(Row) []float64, scale axis) (cdf, bool) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range rows {
		for _, x := range samples(row) {
			low, high = min(low, x), max(high, x)
		}
	}
	if low > high {
		return cdf{}, false
	}
	at, ticks := scale(low, high)
	c := cdf{X: ticks}
	for i := range 5 {
		f := float64(i) / 4
		c.Y = append(c.Y, tick{At: cdfHeight(f), Label: fmt.Sprintf("%.0f%s%%", f*100, narrowSpace)})
	}
	for i, row := range rows {
		if x := samples(row); len(x) > 0 {
			c.Lines = append(c.Lines, cdfLine{series(i), row.Policy, steps(x, at)})
		}
	}
	return c, true
}

func cdfHeight(f float64) float64 { return cdfBottom - f*(cdfBottom-cdfTop) }

// steps draws the distribution as a staircase from 0 at the left end of the
// axis to 1 at the right one.
func steps(samples []float64, at func(float64) float64) string {
	x := slices.Sorted(slices.Values(samples))
	n := min(len(x), cdfSteps)
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", cdfLeft, cdfHeight(0))
	for i := range n {
		done := (i + 1) * len(x) / n
		fmt.Fprintf(&b, "H%.1fV%.1f", at(x[done-1]), cdfHeight(float64(done)/float64(len(x))))
	}
	fmt.Fprintf(&b, "H%.1f", cdfRight)
	return b.String()
}

func linearAxis(_, high float64) (func(float64) float64, []tick) {
	step := niceStep(high, 5)
	top := math.Max(step, math.Ceil(high/step-1e-9)*step)
	at := func(x float64) float64 { return cdfLeft + math.Max(x, 0)/top*(cdfRight-cdfLeft) }
	var ticks []tick
	for i := 0; float64(i)*step <= top*(1+1e-9); i++ {
		ticks = append(ticks, tick{At: at(float64(i) * step), Label: round(float64(i) * step)})
	}
	return at, ticks
}

// logAxis is for µs. Less than a tenth of a microsecond is drawn at the edge.
func logAxis(low, high float64) (func(float64) float64, []tick) {
	const least = 0.1
	low, high = math.Max(low, least), math.Max(high, least)
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if from == to {
		to++
	}
	at := func(x float64) float64 {
		return cdfLeft + (math.Log10(math.Max(x, math.Pow(10, from)))-from)/(to-from)*(cdfRight-cdfLeft)
	}
	var ticks []tick
	for e := from; e <= to; e++ {
		for m := 1.0; m < 10 && (e < to || m == 1); m++ {
			t := tick{At: at(m * math.Pow(10, e))}
			if m == 1 {
				t.Label = decade(e)
			}
			ticks = append(ticks, t)
		}
	}
	return at, ticks
}

// decade writes 10^e µs in the unit that makes it 1, 10 or 100.
func decade(e float64) string {
	switch {
	case e < 0:
		return fmt.Sprintf("%g%sµs", math.Pow(10, e), narrowSpace)
	case e < 3:
		return fmt.Sprintf("%.0f%sµs", math.Pow(10, e), narrowSpace)
	case e < 6:
		return fmt.Sprintf("%.0f%sms", math.Pow(10, e-3), narrowSpace)
	}
	return fmt.Sprintf("%.0f%ss", math.Pow(10, e-6), narrowSpace)
}
