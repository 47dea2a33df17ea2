package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"weft/bench/stats"
	"weft/topology"
)

// sample makes up a report of a fat-tree as a demo would write it.
func sample(t testing.TB, k int) Report {
	t.Helper()
	topo, err := topology.FatTree(k)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	r := Report{
		Title: "One TCP connection over every path", Headline: "drb carries 95 % of ideal.",
		Topology: topo, Fabric: "in memory", RateMbit: 20, IdealMbit: 20 * 1448.0 / 1514,
		IdealNote: "Ideal is 1448 bytes of payload in a frame of 1514 bytes.",
		Command:   "weft demo --seed 1", Facts: []Fact{{"Machine", "2 cores"}, {"Date", "2024-05-01"}},
		Notes: []string{"A note."}, PaperNote: "The paper has a larger fabric.",
	}
	for i, p := range []struct {
		name, label  string
		level, scale float64
	}{
		{"kernel-ecmp", "kernel TCP (cubic), one flow, kernel ECMP", 0.49, 0.5},
		{"kernel-mptcp", "kernel MPTCP, 8 subflows", 0.72, 0.3},
		{"ecmp", "hash of the five-tuple", 0.5, 0.5},
		{"rb", "each packet, uniformly random", 0.89, 0.06},
		{"rrb", "each packet, round robin from a random start", 0.93, 0.04},
		{"drb", "each packet, digit reversal from a random start", 0.953, 0.02},
	} {
		row := Row{Policy: p.name, Label: p.label, Source: "DRB §3.1.2", Retransmits: int64(rng.IntN(4000)), IdlePercent: 40 + 10*rng.Float64()}
		sum := 0.0
		for range topo.NumHosts() {
			x := min(1, max(0.1, p.level+p.scale*(rng.Float64()*2-1)))
			sum += x
			row.PerHostMbit = append(row.PerHostMbit, x*r.IdealMbit)
		}
		row.PercentOfIdeal = sum / float64(topo.NumHosts()) * 100
		row.Jain = stats.Jain(row.PerHostMbit)
		for range 1000 {
			row.RTTMicros = append(row.RTTMicros, 900*math.Exp(rng.NormFloat64()*0.5+p.scale*4))
		}
		if p.name == "drb" {
			paper := 90.1
			row.Paper = &paper
		}
		if i >= 2 {
			row.Reordering = &Reordering{Before: int64(i-2) * 12000, After: int64(i) - 2}
		}
		for c := range k * k / 4 {
			share := 4 / float64(k*k) * (1 + p.scale*(rng.Float64()*2-1))
			row.SharePerPath = append(row.SharePerPath, Share{fmt.Sprintf("3.%d", c), share})
		}
		for range topo.NumLinks() {
			row.Links = append(row.Links, LinkUse{
				min(1, max(0, p.level+p.scale*(rng.Float64()*2-1))),
				min(1, max(0, p.level+p.scale*(rng.Float64()*2-1)))})
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

func write(t testing.TB, r Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// void are the elements of HTML that have no end tag.
var void = []string{"meta", "br"}

// elements reads a page strictly: every tag is closed in turn. It returns the
// start tags and the text outside the style sheet.
func elements(t *testing.T, page string) (tags []html.Token, text string) {
	t.Helper()
	var open []string
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				t.Fatal(z.Err())
			}
			if len(open) > 0 {
				t.Errorf("never closed: %v", open)
			}
			return tags, b.String()
		case html.StartTagToken:
			tag := z.Token()
			tags = append(tags, tag)
			if !slices.Contains(void, tag.Data) {
				open = append(open, tag.Data)
			}
		case html.SelfClosingTagToken:
			tags = append(tags, z.Token())
		case html.EndTagToken:
			tag := z.Token()
			if len(open) == 0 || open[len(open)-1] != tag.Data {
				t.Fatalf("</%s> closes nothing within %v", tag.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if tag := z.Token(); len(open) > 0 && open[len(open)-1] != "style" {
				b.WriteString(tag.Data + "\n")
			}
		}
	}
}

func attribute(tag html.Token, key string) string {
	for _, a := range tag.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func number(tags []html.Token, match func(html.Token) bool) (n int) {
	for _, tag := range tags {
		if match(tag) {
			n++
		}
	}
	return n
}

func TestWrite_isWellFormedAndComplete(t *testing.T) {
	for _, k := range []int{2, 4, 8} {
		r := sample(t, k)
		tags, text := elements(t, write(t, r))
		for _, row := range r.Rows {
			if !strings.Contains(text, row.Policy) || !strings.Contains(text, row.Label) || !strings.Contains(text, percent(row.PercentOfIdeal)) {
				t.Errorf("k=%d: %s, its label or its result is missing", k, row.Policy)
			}
		}
		for _, want := range []string{r.Title, r.Headline, r.Fabric, r.IdealNote, r.Facts[0].Value, r.Command, r.Facts[1].Value, r.Notes[0], r.PaperNote, "90.1", r.Topology.String()} {
			if !strings.Contains(text, want) {
				t.Errorf("k=%d: %q is missing", k, want)
			}
		}
		links := number(tags, func(tag html.Token) bool {
			return tag.Data == "line" && strings.HasPrefix(attribute(tag, "class"), "link")
		})
		if want := len(r.Rows)*r.Topology.NumLinks() + len(scale()); links != want {
			t.Errorf("k=%d: %d links drawn, want %d", k, links, want)
		}
		nodes := number(tags, func(tag html.Token) bool {
			return tag.Data == "g" && strings.HasPrefix(attribute(tag, "class"), "node")
		})
		if want := len(r.Rows) * r.Topology.NumNodes(); nodes != want {
			t.Errorf("k=%d: %d nodes drawn, want %d", k, nodes, want)
		}
		curves := number(tags, func(tag html.Token) bool {
			return tag.Data == "path" && attribute(tag, "class") == "curve" && attribute(tag, "d") != "M0 6H30"
		})
		if curves != 2*len(r.Rows) {
			t.Errorf("k=%d: %d distributions drawn, want %d", k, curves, 2*len(r.Rows))
		}
	}
}

// TestWrite_needsNothingElse looks for all ways to refer to another file.
func TestWrite_needsNothingElse(t *testing.T) {
	page := write(t, sample(t, 4))
	for _, s := range []string{"http:", "https:", "//", "url(", "@import", "javascript:"} {
		if strings.Contains(page, s) {
			t.Errorf("the page contains %q", s)
		}
	}
	tags, _ := elements(t, page)
	for _, tag := range tags {
		if slices.Contains([]string{"script", "link", "img", "iframe", "object", "embed", "use", "image"}, tag.Data) {
			t.Errorf("the page contains <%s>", tag.Data)
		}
		for _, a := range tag.Attr {
			if a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s=%q", tag.Data, a.Key, a.Val)
			}
		}
	}
}

func TestWrite_escapesHostileNames(t *testing.T) {
	const hostile = `</title></style><script>alert("1")</script>'&{{.}}`
	r := sample(t, 4)
	r.Title, r.Headline, r.Fabric, r.IdealNote = hostile, hostile, hostile, hostile
	r.Command, r.PaperNote, r.Facts, r.Notes = hostile, hostile, []Fact{{hostile, hostile}}, []string{hostile}
	for i := range r.Rows {
		r.Rows[i].Policy, r.Rows[i].Label, r.Rows[i].Source = hostile, hostile, hostile
		for j := range r.Rows[i].SharePerPath {
			r.Rows[i].SharePerPath[j].Path = hostile
		}
	}
	tags, text := elements(t, write(t, r))
	if number(tags, func(tag html.Token) bool { return tag.Data == "script" }) > 0 {
		t.Error("a name became a script")
	}
	if !strings.Contains(text, hostile) {
		t.Error("the name is not shown as it is")
	}
}

func TestWrite_showsNoBrokenNumbers(t *testing.T) {
	bad := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300, 0}
	for _, x := range bad {
		r := sample(t, 4)
		r.RateMbit, r.IdealMbit = x, x
		for i := range r.Rows {
			row := &r.Rows[i]
			row.PercentOfIdeal, row.Jain, row.IdlePercent = x, x, x
			row.PerHostMbit[0], row.RTTMicros[0], row.SharePerPath[0].Fraction = x, x, x
			row.Links[0] = LinkUse{x, x}
			row.Reordering = &Reordering{math.MinInt64, math.MaxInt64}
		}
		checkNumbers(t, x, write(t, r))
		r.Rows = r.Rows[:1]
		r.Rows[0].PerHostMbit, r.Rows[0].RTTMicros = []float64{x}, []float64{x}
		checkNumbers(t, x, write(t, r))
	}
}

func checkNumbers(t *testing.T, x float64, page string) {
	t.Helper()
	tags, text := elements(t, page)
	all := []string{text}
	for _, tag := range tags {
		for _, a := range tag.Attr {
			all = append(all, a.Val)
		}
		if w := attribute(tag, "width"); strings.HasPrefix(w, "-") {
			t.Errorf("with %v: <%s> is %s wide", x, tag.Data, w)
		}
	}
	text = strings.Join(all, "\n")
	for _, s := range []string{"NaN", "Inf", "%!"} {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("with %v: the page contains %s: %q", x, s, text[max(0, i-40):i+10])
		}
	}
}

func TestWrite_withLittle(t *testing.T) {
	k4 := sample(t, 4).Topology
	big, err := topology.FatTree(16)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]Report{
		"nothing":             {},
		"no rows":             {Title: "x", Topology: k4},
		"empty rows":          {Topology: k4, Rows: make([]Row, 12)},
		"no topology":         {Rows: []Row{{Policy: "p", Links: make([]LinkUse, 48)}}},
		"links do not fit":    {Topology: k4, Rows: []Row{{Policy: "p", Links: make([]LinkUse, 3)}}},
		"too large to draw":   {Topology: big, Rows: []Row{{Policy: "p", Links: make([]LinkUse, big.NumLinks())}}},
		"links all idle":      {Topology: k4, Rows: []Row{{Policy: "p", Links: make([]LinkUse, 48)}}},
		"a single sample":     {Rows: []Row{{Policy: "p", PerHostMbit: []float64{3}, RTTMicros: []float64{100}}}},
		"nothing transferred": {IdealMbit: 1, Rows: []Row{{PerHostMbit: []float64{0, 0}, RTTMicros: []float64{0}, Reordering: &Reordering{}, SharePerPath: []Share{{"3.0", 0}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			page := write(t, r)
			tags, _ := elements(t, page)
			checkNumbers(t, 0, page)
			rows := number(tags, func(tag html.Token) bool { return tag.Data == "tr" })
			if want := len(r.Rows) + 1; len(r.Rows) > 0 && rows != want {
				t.Errorf("%d rows in the table, want %d", rows, want)
			}
		})
	}
}

func TestWrite_leavesTheReportAlone(t *testing.T) {
	r := sample(t, 4)
	r.Rows[0].PercentOfIdeal, r.Rows[0].RTTMicros[0] = math.Inf(1), math.Inf(1)
	write(t, r)
	if !math.IsInf(r.Rows[0].PercentOfIdeal, 1) || !math.IsInf(r.Rows[0].RTTMicros[0], 1) {
		t.Error("Write changed the rows")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWrite_returnsTheWritersError(t *testing.T) {
	if err := Write(failingWriter{}, Report{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write = %v, want %v", err, io.ErrClosedPipe)
	}
}

func TestWrite_furtherTables(t *testing.T) {
	r := sample(t, 4)
	r.Tables = []Table{{Title: "A spine dies", About: "What <it> shows.", Head: []string{"failure", "ms"}, Rows: [][]string{{"seen", "3.5"}}}}
	_, text := elements(t, write(t, r))
	for _, want := range []string{"A spine dies", "What <it> shows.", "failure", "seen", "3.5"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
