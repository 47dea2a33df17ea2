package papers

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

// page returns a page and its text.
func page(t *testing.T, p Page) (html, text string) {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var words strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			return b.String(), words.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			words.Write(c)
		}
	}
}

func TestPage_hasAllAndNeedsNothing(t *testing.T) {
	first, second := run(t, fake(), Options{Seed: 1}), run(t, of(Within("only", "Gbit/s", 1, 1, 1)), Options{Seeds: EnoughSeeds})
	html, words := page(t, Page{Reports: []*Report{first, second}, Facts: []Parameter{{Name: "Machine", Value: "two cores"}}, Command: "weft sim report --seed 1"})
	for _, s := range []string{
		"2 experiments: 1 agrees within its tolerance, 0 agrees in sign and order, 1 is not decided by so few seeds, 0 disagrees; 2 of 3 published values within tolerance", "two cores", "weft sim report --seed 1",
		"drb-f0", "DRB §5.0, Fig. 0", "What a < b & c shows", "the fabric is not there",
		"DRB > RB > RRB", "holds", "does not", "goodput, Mbit/s per host", "905", "10 %", "[1]", "the paper's is a bound",
		"window", "64 KB", "stated by the paper", "inferred by us", "256 KB contradicts the paper's round trip", "links", "paper",
		"goodput of hosts", "CDF, over Mbit/s", "The dark mark", "only", "1 of 2", "1 of 1",
	} {
		if !strings.Contains(words, s) {
			t.Errorf("no %q on the page", s)
		}
	}
	for _, bad := range []string{"<script", "http", "NaN", "Inf", "src=", "ZgotmplZ"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// What the paper states is drawn into lines, and is in range, though ours are elsewhere.
func TestPage_drawsWhatThePaperStates(t *testing.T) {
	c := Chart{Title: "queues", Lines: []Line{{Name: "DRB", X: []float64{0, 1}, Y: []float64{0, 2}}, {Name: "RB", X: []float64{0, 1}, Y: []float64{1, 1}}}}
	c.State("RB", 2, 8)
	drawn := c.draw()
	if len(drawn.Lines[0].Paper) != 0 || len(drawn.Lines[1].Paper) != 1 || !drawn.HasPoints {
		t.Fatalf("%+v", drawn)
	}
	if at := drawn.Lines[1].Paper[0]; at[0] < linesLeft || at[0] > linesRight || at[1] < linesTop || at[1] > linesBottom {
		t.Errorf("the point is at %v", at)
	}
	kept, err := json.Marshal(&Outcome{Rows: []Row{Info("a", "b", 1)}, Charts: []Chart{c}})
	if err != nil {
		t.Fatal(err)
	}
	var again Outcome
	if err := json.Unmarshal(kept, &again); err != nil || !reflect.DeepEqual(again.Charts[0].Lines[1].Paper, []Point{{2, 8}}) {
		t.Errorf("kept: %+v, %v", again.Charts, err)
	}
	r := run(t, fake(), Options{})
	r.Charts, r.Defined, r.Stored = []Chart{c}, "bench/papers/drb/a.go", "2026-11-28, commit 0123, 5 seeds from 1 on: agrees"
	html, words := page(t, Page{Reports: []*Report{r}})
	for _, s := range []string{"Squares are what the paper states", "Defined in bench/papers/drb/a.go", "Kept: 2026-11-28"} {
		if !strings.Contains(words, s) {
			t.Errorf("no %q on the page", s)
		}
	}
	if strings.Count(html, `class="stated"`) != 1 || !strings.Contains(html, `href="bench/papers/drb/a.go"`) {
		t.Error("the page lacks the point or the link")
	}
}

func TestPage_ofChartsThatHaveLittle(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	r := run(t, fake(), Options{})
	r.Charts = []Chart{
		{}, {Lines: []Line{{}}}, {LogX: true, LogY: true, Lines: []Line{{X: []float64{0, -1}, Y: []float64{0, 2}}}},
		{Lines: []Line{{X: []float64{nan, 1, 2}, Y: []float64{1, inf}}}},
		{Bars: []Bar{{Ours: nan, Paper: &inf}, {Ours: -3}}},
		{LogX: true, Lines: []Line{{X: []float64{1e-300, 1e300}, Y: []float64{1, 2}}}},
	}
	html, _ := page(t, Page{Reports: []*Report{r}})
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

func TestPage_tellsItsWritersErrors(t *testing.T) {
	if err := (Page{}).Write(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
