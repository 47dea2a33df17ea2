package papers

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

// Page is an HTML page of reports that needs no other file.
type Page struct {
	Reports []*Report
	Facts   []Parameter // of the machine and the like
	Command string
}

var (
	//go:embed page.html.tmpl
	pageText string
	//go:embed page.css
	pageStyle string

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"at": func(x float64) string { return fmt.Sprintf("%.1f", x) },
	}).Parse(pageText))
)

// Write writes the page. Its errors are w's.
func (p Page) Write(w io.Writer) error {
	v := pageView{Page: p, Style: template.CSS(pageStyle)}
	for _, r := range p.Reports {
		v.Sections = append(v.Sections, newSection(r))
	}
	for _, verdict := range []Verdict{Agrees, AgreesOrder, Disagrees} {
		n := 0
		for _, r := range p.Reports {
			if r.Verdict == verdict {
				n++
			}
		}
		v.Counts = append(v.Counts, count{n, verdict, verdictClass[verdict]})
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return fmt.Errorf("papers: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

type pageView struct {
	Page
	Style    template.CSS
	Counts   []count
	Sections []section
}

type count struct {
	N       int
	Verdict Verdict
	Class   string
}

// verdictClass names the colours of verdicts.
var verdictClass = map[Verdict]string{Agrees: "good", AgreesOrder: "fair", Disagrees: "bad"}

// section is a report's.
type section struct {
	*Report
	Which     string // seeds
	Class     string // of the verdict
	OK, Of    int    // rows that agree, of those with something to agree with
	CPU, Rate string
	Table     []tableRow
	Notes     []string
	Pictures  []picture
}

type tableRow struct{ Label, Metric, Paper, Ours, Range, Tolerance, Mark, Note string }

func newSection(r *Report) section {
	s := section{Report: r, Which: r.seeds(), Class: verdictClass[r.Verdict], CPU: fmt.Sprintf("%.1f", r.CPUS), Rate: "-"}
	if r.PacketHops > 0 && r.CPUS > 0 {
		s.Rate = fmt.Sprintf("%.1f", r.PacketHopsPerCPUS/1e6)
	}
	n := notesOf(r.Rows)
	s.Notes = n
	for _, row := range r.Rows {
		mark := row.mark()
		if mark != "-" {
			s.Of++
		}
		if mark == "yes" {
			s.OK++
		}
		s.Table = append(s.Table, tableRow{row.Label, row.Metric, row.paper(), row.ours(), row.span(r.Seeds), row.tolerance(), mark, n.mark(row)})
	}
	for _, c := range r.Charts {
		s.Pictures = append(s.Pictures, c.draw())
	}
	return s
}
