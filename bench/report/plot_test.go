package report

import (
	"encoding/xml"
	"strings"
	"testing"
)

func TestPlot_isWellFormedAndComplete(t *testing.T) {
	var b strings.Builder
	p := Plot{Title: "a < b", XTitle: "skew", YTitle: "Gbit/s", X: []string{"0", "1 ms"},
		Lines: []PlotLine{{Name: "one & only", Y: []float64{9.4, 0}}, {Name: "two", Y: []float64{0, 4}, Dashed: true}}}
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := textOf(t, xml.NewDecoder(strings.NewReader(b.String())))
	for _, s := range []string{"a < b", "one & only", "two", "1 ms", "Gbit/s", "10"} {
		if !strings.Contains(text, s) {
			t.Errorf("no %q in the picture", s)
		}
	}
	if n := strings.Count(b.String(), "<circle"); n != 4 {
		t.Errorf("%d points, want 4", n)
	}
}
