package papers

import (
	"fmt"
	"math"
	"strings"
)

// The measures of charts, in the units of their viewBox, which is 520 wide.
const (
	linesLeft, linesRight    = 52.0, 505.0
	linesTop, linesBottom    = 12.0, 250.0
	barsLeft, barsRight      = 130.0, 440.0
	barsTop, barRow, barFoot = 8.0, 30.0, 24.0
	series                   = 9 // colours that the page knows
	// fewPoints are drawn as points as well, since each is a run.
	fewPoints = 25
)

// picture is a Chart with its positions computed.
type picture struct {
	Title, X, Y    string
	Height, Bottom float64
	XTicks, YTicks []tick
	Lines          []drawnLine
	Bars           []drawnBar
	HasPaper       bool // a bar has a mark for the paper's
	HasPoints      bool // a line has
}

type drawnLine struct {
	Series int
	Name   string
	Path   string // an SVG path
	Points [][2]float64
	Paper  [][2]float64
}

type drawnBar struct {
	Series      int
	Name, Value string
	Y, Middle   float64
	Left, Width float64
	Paper       float64 // where it is; 0: nowhere
	Thick       float64
}

func (c Chart) draw() picture {
	p := picture{Title: c.Title, X: c.X, Y: c.Y}
	if len(c.Bars) > 0 {
		c.drawBars(&p)
	} else {
		c.drawLines(&p)
	}
	return p
}

func (c Chart) drawLines(p *picture) {
	var xs, ys []float64
	for _, l := range c.Lines {
		n := min(len(l.X), len(l.Y))
		xs, ys = append(xs, l.X[:n]...), append(ys, l.Y[:n]...)
		for _, p := range l.Paper {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x := newAxis(linesLeft, linesRight, xs, c.LogX)
	y := newAxis(linesBottom, linesTop, ys, c.LogY)
	p.Height, p.Bottom, p.XTicks, p.YTicks = linesBottom+30, linesBottom, x.ticks, y.ticks
	for i, l := range c.Lines {
		d := drawnLine{Series: i % series, Name: l.Name}
		var path strings.Builder
		for j := range min(len(l.X), len(l.Y)) {
			if !finite(l.X[j]) || !finite(l.Y[j]) {
				continue
			}
			at := [2]float64{x.at(l.X[j]), y.at(l.Y[j])}
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(path.Len(), 1)], at[0], at[1])
			if len(l.X) <= fewPoints {
				d.Points = append(d.Points, at)
			}
		}
		d.Path = path.String()
		for _, stated := range l.Paper {
			if finite(stated.X) && finite(stated.Y) {
				d.Paper, p.HasPoints = append(d.Paper, [2]float64{x.at(stated.X), y.at(stated.Y)}), true
			}
		}
		p.Lines = append(p.Lines, d)
	}
}

func (c Chart) drawBars(p *picture) {
	var values []float64
	for _, b := range c.Bars {
		values = append(values, b.Ours)
		if b.Paper != nil {
			values = append(values, *b.Paper)
		}
	}
	x := newAxis(barsLeft, barsRight, values, false)
	p.Bottom = barsTop + barRow*float64(len(c.Bars))
	p.Height, p.XTicks = p.Bottom+barFoot, x.ticks
	for i, b := range c.Bars {
		y := barsTop + barRow*float64(i)
		d := drawnBar{
			Series: i % series, Name: b.Name, Value: number(b.Ours),
			Y: y + 7, Middle: y + barRow/2, Thick: barRow - 14,
			Left: min(x.at(0), x.at(b.Ours)), Width: math.Abs(x.at(b.Ours) - x.at(0)),
		}
		if !finite(b.Ours) {
			d.Value = "-"
		}
		if b.Paper != nil && finite(*b.Paper) {
			p.HasPaper = true
			d.Paper = x.at(*b.Paper)
			d.Value += " (" + number(*b.Paper) + ")"
		}
		p.Bars = append(p.Bars, d)
	}
}
