package report

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

func charts() Charts {
	return Charts{
		Title: "a < b", Headline: "it held", Command: "weft bench failover --plot x.html",
		Facts:  []Fact{{"Machine", "two processors"}},
		Notes:  []string{"a note"},
		Tables: []Table{{Title: "levels", Head: []string{"event", "Mbit/s"}, Rows: [][]string{{"3.0 removed", "96"}}}},
		Charts: []Chart{{
			Title: "goodput", X: "s", Y: "Mbit/s", Legend: "dashed is theory",
			Lines: []ChartLine{
				{Name: "measured & true", X: []float64{0, 1, 2}, Y: []float64{120, math.NaN(), 60}},
				{Name: "ideal", X: []float64{0, 2}, Y: []float64{128, 64}, Expected: true},
			},
			Marks: []Mark{{1, "3.0 removed"}, {1.1, "3.1 removed"}},
		}},
	}
}

func TestCharts_isWellFormedAndComplete(t *testing.T) {
	var b strings.Builder
	if err := charts().Write(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	text := textOf(t, d)
	for _, s := range []string{"a < b", "it held", "two processors", "a note", "levels", "96", "goodput", "Mbit/s, over s", "dashed is theory",
		"measured & true", "ideal", "3.0 removed", "3.1 removed", "150", "weft bench failover"} {
		if !strings.Contains(text, s) {
			t.Errorf("no %q on the page", s)
		}
	}
	for _, bad := range []string{"<script", "http", "NaN", "Inf", "src="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

func TestChart_placesLinesAndMarksAlike(t *testing.T) {
	d := charts().Charts[0].draw()
	if len(d.Lines) != 2 || d.Lines[0].Series != 0 || !d.Lines[1].Expected {
		t.Fatalf("%+v", d.Lines)
	}
	// 120 of 150 is at four fifths of the height, the second of two seconds in the middle.
	if want := "M56.0 101.2L498.0 330.0L940.0 215.6"; d.Lines[0].Path != want {
		t.Errorf("path %s, want %s", d.Lines[0].Path, want)
	}
	if d.Marks[0].At != 498 || d.Marks[0].NameY == d.Marks[1].NameY {
		t.Errorf("marks %+v", d.Marks)
	}
}

func TestChart_ofNothingIsDrawn(t *testing.T) {
	for _, c := range []Chart{{}, {Lines: []ChartLine{{}}}, {Lines: []ChartLine{{X: []float64{0}, Y: []float64{0}}}}} {
		d := c.draw()
		if len(d.YTicks) == 0 || len(d.YTicks) > 20 || len(d.XTicks) > 20 {
			t.Errorf("%+v: %d and %d ticks", c, len(d.XTicks), len(d.YTicks))
		}
	}
}

// textOf is the text of a document, which must be well-formed.
func textOf(t *testing.T, d *xml.Decoder) string {
	t.Helper()
	var text strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			text.Write(c)
		}
	}
}
