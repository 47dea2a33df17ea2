package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// Charts is a page of charts in one file, as Report is. Empty parts are left out.
// Numbers that are not finite count as 0.
type Charts struct {
	Title    string
	Headline string // the result in a sentence
	Facts    []Fact
	Charts   []Chart
	Tables   []Table
	Notes    []string
	Command  string
}

// Fact is a name and what it has.
type Fact struct{ Name, Value string }

// Table is a table whose first column is text.
type Table struct {
	Title string
	About string // what it shows, in sentences
	Head  []string
	Rows  [][]string
}

// Chart has lines over a numeric axis, and marks on it.
type Chart struct {
	Title  string
	X, Y   string // what the axes measure, with the unit
	Lines  []ChartLine
	Marks  []Mark
	Legend string // a sentence below
}

// ChartLine is a line through points by ascending X.
type ChartLine struct {
	Name string
	X, Y []float64 // as many
	// Expected draws a thin line in the text colour, for values that theory predicts.
	Expected bool
}

// EndAt leaves out what lines have beyond a place of the X axis.
func (c *Chart) EndAt(x float64) {
	for i := range c.Lines {
		l := &c.Lines[i]
		n := 0
		for n < len(l.X) && l.X[n] <= x {
			n++
		}
		l.X, l.Y = l.X[:n], l.Y[:n]
	}
}

// Mark is an event at a place of the X axis.
type Mark struct {
	X    float64
	Name string
}

//go:embed charts.html.tmpl
var chartsPage string

var chartsTmpl = template.Must(template.New("charts").Funcs(template.FuncMap{"at": at}).Parse(chartsPage))

// Write writes the page as HTML in UTF-8. Its errors are w's.
func (c Charts) Write(w io.Writer) error {
	var b bytes.Buffer
	v := struct {
		Charts
		Style template.CSS
		Drawn []drawnChart
	}{Charts: c, Style: template.CSS(style)}
	for _, chart := range c.Charts {
		v.Drawn = append(v.Drawn, chart.draw())
	}
	if err := chartsTmpl.Execute(&b, v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// The measures of a Chart, in the units of its viewBox.
const (
	chartLeft, chartRight = 56.0, 940.0
	chartTop, chartBottom = 44.0, 330.0
	// Names of marks take turns on so many lines, as they may be close.
	chartMarkLines = 2
)

// drawnChart is a Chart with its positions computed.
type drawnChart struct {
	Title, X, Y, Legend string
	XTicks, YTicks      []tick
	Lines               []drawnLine
	Marks               []drawnMark
}

type drawnLine struct {
	Series   series
	Name     string
	Path     string // an SVG path
	Expected bool
}

type drawnMark struct {
	At, NameY float64
	Name      string
}

func (c Chart) draw() drawnChart {
	d := drawnChart{Title: c.Title, X: c.X, Y: c.Y, Legend: c.Legend}
	var right, high float64
	for _, l := range c.Lines {
		for i := range l.X {
			right, high = max(right, finite(l.X[i])), max(high, finite(l.Y[i]))
		}
	}
	for _, m := range c.Marks {
		right = max(right, finite(m.X))
	}
	xStep, yStep := niceStep(right, 10), niceStep(high, 5)
	top := yStep * math.Max(1, math.Ceil(high/yStep-1e-9))
	if right == 0 {
		right = 1
	}
	x := func(v float64) float64 { return chartLeft + finite(v)/right*(chartRight-chartLeft) }
	y := func(v float64) float64 { return chartBottom - finite(v)/top*(chartBottom-chartTop) }
	for v := 0.0; v <= right*1.001; v += xStep {
		d.XTicks = append(d.XTicks, tick{At: x(v), Label: round(v)})
	}
	for v := 0.0; v <= top*1.001; v += yStep {
		d.YTicks = append(d.YTicks, tick{At: y(v), Label: round(v)})
	}
	n := 0
	for _, l := range c.Lines {
		line := drawnLine{Name: l.Name, Expected: l.Expected}
		if !l.Expected {
			line.Series = series(n)
			n++
		}
		var b strings.Builder
		for i := range l.X {
			fmt.Fprintf(&b, "%c%s %s", "ML"[min(i, 1)], at(x(l.X[i])), at(y(l.Y[i])))
		}
		line.Path = b.String()
		d.Lines = append(d.Lines, line)
	}
	for i, m := range c.Marks {
		d.Marks = append(d.Marks, drawnMark{x(m.X), chartTop - 8 - 16*float64(i%chartMarkLines), m.Name})
	}
	return d
}
