package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// HeatMap is a table of percentages, of which 100 is as good as the best and less is worse, as
// a self-contained SVG or as a table of Markdown.
type HeatMap struct {
	Title, XTitle, YTitle string
	Groups                []HeatGroup // of columns, from left to right
	Rows                  []HeatRow
}

// HeatGroup are columns side by side.
type HeatGroup struct {
	Name    string
	Columns []string
}

// HeatRow has a value for each column of all groups.
type HeatRow struct {
	Name  string
	Cells []float64 // NaN: not measured
}

// columns returns the names of all columns, with their groups.
func (h HeatMap) columns() (all []string) {
	for _, g := range h.Groups {
		for _, c := range g.Columns {
			all = append(all, g.Name+" "+c)
		}
	}
	return all
}

// The measures of a HeatMap.
const (
	heatLeft, heatTop   = 110, 84
	heatCell, heatLine  = 40, 24 // width and height of a cell
	heatGap, heatMargin = 8, 20  // between groups, around all
)

// heatSteps are the lowest values of the colours, best first.
var heatSteps = []struct {
	from   float64
	colour string
	name   string
}{
	{102, "#86efac", "better by more than 2"},
	{98, "#dcfce7", "within 2"},
	{95, "#fef08a", "2 to 5 worse"},
	{90, "#fdba74", "5 to 10 worse"},
	{0, "#f87171", "worse"},
}

func heatColour(v float64) string {
	for _, s := range heatSteps {
		if v >= s.from {
			return s.colour
		}
	}
	return "#e2e8f0" // not measured
}

// heatNumber is a value as cells show it.
func heatNumber(v float64) string {
	if v != v {
		return ""
	}
	return fmt.Sprintf("%.0f", v)
}

// Write writes the SVG.
func (h HeatMap) Write(w io.Writer) error {
	var b strings.Builder
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
	}
	columns := len(h.columns())
	width := heatLeft + columns*heatCell + len(h.Groups)*heatGap + heatMargin
	height := heatTop + len(h.Rows)*heatLine + 3*heatMargin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#334155">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="14" font-weight="bold">%s</text>`+"\n", heatMargin, html.EscapeString(h.Title))
	text(heatLeft-10, heatTop-26, "end", h.XTitle)
	text(heatLeft-10, heatTop-8, "end", h.YTitle)
	x, column := float64(heatLeft), 0
	for _, g := range h.Groups {
		text(x+float64(len(g.Columns)*heatCell)/2, heatTop-26, "middle", g.Name)
		for _, c := range g.Columns {
			text(x+heatCell/2, heatTop-8, "middle", c)
			for i, r := range h.Rows {
				y := float64(heatTop + i*heatLine)
				fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="%d" height="%d" fill="%s"/>`+"\n", x, y, heatCell-1, heatLine-1, heatColour(r.Cells[column]))
				text(x+heatCell/2, y+16, "middle", heatNumber(r.Cells[column]))
			}
			x += heatCell
			column++
		}
		x += heatGap
	}
	for i, r := range h.Rows {
		text(heatLeft-10, float64(heatTop+i*heatLine+16), "end", r.Name)
	}
	x = heatLeft
	for _, s := range slices.Backward(heatSteps) {
		y := float64(heatTop + len(h.Rows)*heatLine + heatMargin)
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="12" height="12" fill="%s"/>`+"\n", x, y, s.colour)
		text(x+18, y+10, "start", s.name)
		x += 30 + 7*float64(len(s.name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the table.
func (h HeatMap) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	columns := h.columns()
	fmt.Fprintf(&b, "| %s \\ %s | %s |\n|%s\n", h.YTitle, h.XTitle, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)+1))
	for _, r := range h.Rows {
		fmt.Fprintf(&b, "| %s |", r.Name)
		for _, v := range r.Cells {
			fmt.Fprintf(&b, " %s |", heatNumber(v))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
