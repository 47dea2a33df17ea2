package report

import (
	"fmt"
	"math"
	"slices"

	"weft/bench/stats"
)

// A chart's measures, in the units of its viewBox.
const (
	barWidth  = 960.0
	barLeft   = 150.0 // the names are left of it
	barRight  = 830.0 // the numbers are right of it
	barRow    = 36.0
	barTop    = 10.0
	barBottom = 26.0 // for the axis
)

// bars is a chart of horizontal bars on one axis.
type bars struct {
	Height, Bottom float64
	Ticks          []tick
	Rows           []bar
}

type tick struct {
	At     float64
	Label  string
	Strong bool
}

type bar struct {
	Series           series
	Name             string
	Y, Middle, Thick float64
	Left, Width      float64
	Faint            bool
	Value, Title     string
	Whisker          *whisker
	Paper            string // an SVG path: where a paper has the bar's end
}

// whisker marks the least, the median and the greatest on a bar.
type whisker struct{ Min, Median, Max float64 }

// Mark and Cap are the ends of the whisker's vertical strokes.
func (b bar) Mark() [2]float64 { return [2]float64{b.Middle - b.Thick/2 - 3, b.Middle + b.Thick/2 + 3} }
func (b bar) Cap() [2]float64  { return [2]float64{b.Middle - 5, b.Middle + 5} }

// newBars makes the frame for rows of which the largest value is top.
func newBars(rows int, top float64, label func(float64) string) (bars, func(float64) float64) {
	step := niceStep(top, 5)
	top = math.Max(step, math.Ceil(top/step-1e-9)*step)
	at := func(x float64) float64 { return barLeft + math.Max(x, 0)/top*(barRight-barLeft) }
	b := bars{Bottom: barTop + float64(rows)*barRow}
	b.Height = b.Bottom + barBottom
	for i := 0; float64(i)*step <= top*(1+1e-9); i++ {
		b.Ticks = append(b.Ticks, tick{At: at(float64(i) * step), Label: label(float64(i) * step)})
	}
	return b, at
}

// niceStep is 1, 2 or 5 times a power of ten, such that about n of them make
// top.
func niceStep(top float64, n int) float64 {
	if top <= 0 {
		return 1
	}
	raw := top / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// goodputBars shows the share of ideal, with the hosts' spread on top.
func goodputBars(r Report) bars {
	ideal := finite(r.IdealMbit)
	top := 100.0
	for _, row := range r.Rows {
		top = max(top, row.PercentOfIdeal)
		if row.Paper != nil {
			top = max(top, *row.Paper)
		}
		if ideal > 0 && len(row.PerHostMbit) > 0 {
			top = max(top, slices.Max(row.PerHostMbit)/ideal*100)
		}
	}
	b, at := newBars(len(r.Rows), top, func(x float64) string { return round(x) + narrowSpace + "%" })
	for i := range b.Ticks {
		b.Ticks[i].Strong = math.Abs(b.Ticks[i].At-at(100)) < 1e-6
	}
	for i, row := range r.Rows {
		y := barTop + float64(i)*barRow
		line := bar{
			Series: series(i), Name: row.Policy,
			Y: y + 8, Thick: barRow - 16, Middle: y + barRow/2,
			Left: barLeft, Width: at(row.PercentOfIdeal) - barLeft,
			Value: percent(row.PercentOfIdeal),
			Title: row.Policy + ": " + percent(row.PercentOfIdeal) + " of ideal",
		}
		if p := row.Paper; p != nil {
			line.Paper = diamond(at(*p), line.Middle)
			line.Title += "; the paper's: " + percent(*p)
		}
		if x := row.PerHostMbit; ideal > 0 && len(x) > 0 {
			low, mid, high := slices.Min(x), stats.Median(x), slices.Max(x)
			line.Whisker = &whisker{at(low / ideal * 100), at(mid / ideal * 100), at(high / ideal * 100)}
			line.Title += "; hosts: least " + mbit(low) + ", median " + mbit(mid) + ", greatest " + mbit(high)
		}
		b.Rows = append(b.Rows, line)
	}
	return b
}

// diamond is a mark around a point.
func diamond(x, y float64) string {
	const r = 6
	return fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sZ", at(x), at(y-r), at(x+r), at(y), at(x), at(y+r), at(x-r), at(y))
}

// reorderingBars shows two bars for each row that counted; none if none did.
func reorderingBars(r Report) bars {
	top, n := 0.0, 0
	for _, row := range r.Rows {
		if o := row.Reordering; o != nil {
			top = max(top, float64(o.Before), float64(o.After))
			n++
		}
	}
	if n == 0 {
		return bars{}
	}
	b, at := newBars(n, top, round)
	y := barTop
	for i, row := range r.Rows {
		o := row.Reordering
		if o == nil {
			continue
		}
		for half, x := range []int64{o.Before, o.After} {
			line := bar{
				Series: series(i),
				Y:      y + 4 + 15*float64(half), Thick: 12, Middle: y + 10 + 15*float64(half),
				Left: barLeft, Width: at(float64(x)) - barLeft,
				Faint: half == 0, Value: count(x) + " before",
			}
			if half == 0 {
				line.Name = row.Policy
			} else {
				line.Value = count(x) + " after"
			}
			line.Title = row.Policy + ": " + line.Value
			b.Rows = append(b.Rows, line)
		}
		y += barRow
	}
	return b
}
