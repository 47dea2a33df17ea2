package report

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Plot is a chart of lines over a few named places, as a self-contained SVG.
type Plot struct {
	Title, XTitle, YTitle string
	X                     []string // names of the places, evenly apart
	Lines                 []PlotLine
}

// PlotLine has a value for each place.
type PlotLine struct {
	Name   string
	Y      []float64
	Dashed bool
}

// The measures of a Plot.
const (
	plotWidth, plotHeight = 720, 400
	plotLeft, plotRight   = 60, 480
	plotTop, plotBottom   = 50, 340
)

var plotColours = []string{"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#475569", "#0891b2", "#be185d"}

// Write writes the SVG.
func (p Plot) Write(w io.Writer) error {
	high := 0.0
	for _, l := range p.Lines {
		for _, y := range l.Y {
			high = max(high, y)
		}
	}
	step := niceStep(high, 5)
	top := step
	for top < high {
		top += step
	}
	at := func(i int) float64 {
		if len(p.X) < 2 {
			return plotLeft
		}
		return plotLeft + float64(i)*(plotRight-plotLeft)/float64(len(p.X)-1)
	}
	height := func(y float64) float64 { return plotBottom - y/top*(plotBottom-plotTop) }
	text := func(b *strings.Builder, x, y float64, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
	}

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#334155">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="15" font-weight="bold">%s</text>`+"\n", plotLeft, html.EscapeString(p.Title))
	text(&b, plotLeft, plotTop-10, "start", p.YTitle)
	text(&b, (plotLeft+plotRight)/2, plotBottom+40, "middle", p.XTitle)
	for y := 0.0; y <= top*1.001; y += step {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#e2e8f0"/>`+"\n", plotLeft, height(y), plotRight)
		text(&b, plotLeft-8, height(y)+4, "end", round(y))
	}
	for i, x := range p.X {
		text(&b, at(i), plotBottom+20, "middle", x)
	}
	for i, l := range p.Lines {
		colour := plotColours[i%len(plotColours)]
		dash := ""
		if l.Dashed {
			dash = ` stroke-dasharray="5 4"`
		}
		var d strings.Builder
		for j, y := range l.Y {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(j, 1)], at(j), height(y))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", d.String(), colour, dash)
		for j, y := range l.Y {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", at(j), height(y), colour)
		}
		y := plotTop + 10 + 20*float64(i)
		fmt.Fprintf(&b, `<path d="M%d %.1fh24" stroke="%s" stroke-width="2"%s/>`+"\n", plotRight+20, y-4, colour, dash)
		text(&b, plotRight+52, y, "start", l.Name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
