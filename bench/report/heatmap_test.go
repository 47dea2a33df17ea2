package report

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

func TestHeatMap(t *testing.T) {
	h := HeatMap{
		Title: "a < b", XTitle: "paths", YTitle: "rate",
		Groups: []HeatGroup{{"2", []string{"1", "4"}}, {"4", []string{"1"}}},
		Rows:   []HeatRow{{"10", []float64{100, 96.6, 103}}, {"20", []float64{12, math.NaN(), 98}}},
	}
	var svg, md strings.Builder
	if err := h.Write(&svg); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(svg.String())); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, svg.String())
		}
	}
	for _, want := range []string{"a &lt; b", ">97<", ">103<", heatColour(96.6), heatColour(103), heatColour(12), heatColour(math.NaN())} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("no %s in\n%s", want, svg.String())
		}
	}
	if err := h.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	want := "| rate \\ paths | 2 1 | 2 4 | 4 1 |\n|---|---|---|---|\n| 10 | 100 | 97 | 103 |\n| 20 | 12 |  | 98 |\n"
	if md.String() != want {
		t.Errorf("got\n%s\nwant\n%s", md.String(), want)
	}
}
