package papers

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
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
		v.Total.Within += r.Score.Within
		v.Total.Of += r.Score.Of
		if r.Decided != nil {
			v.Open.Add(r.Verdict, *r.Decided)
		}
	}
	for _, verdict := range []Verdict{Agrees, AgreesOrder, Undecided, Disagrees, OnlyFitted, OnlyBounds} {
		n := 0
		for _, r := range p.Reports {
			if r.Verdict == verdict {
				n++
			}
		}
		if n > 0 || verdict == Agrees || verdict == AgreesOrder || verdict == Disagrees {
			v.Counts = append(v.Counts, count{n, verdict, verdictClass[verdict]})
		}
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
	Total    Score
	Open     Open
	Sections []section
}

type count struct {
	N       int
	Verdict Verdict
	Class   string
}

// verdictClass names the colours of verdicts.
var verdictClass = map[Verdict]string{Agrees: "good", AgreesOrder: "fair", Undecided: "fair", Disagrees: "bad", OnlyFitted: "fair", OnlyBounds: "fair"}

// section is a report's.
type section struct {
	*Report
	Which      string // seeds
	Class      string // of the verdict
	CPU, Rate  string
	DecidedBy  string
	NoEvidence string
	Setting    []settingRow
	Table      []tableRow
	Notes      []string
	Pictures   []picture
}

// settingRow is a parameter: stated, inferred, or both where we run another value than the
// stated one.
type settingRow struct{ Name, Stated, Inferred, Why string }

func settingRows(stated, inferred []Parameter) (rows []settingRow) {
	for _, p := range stated {
		rows = append(rows, settingRow{Name: p.Name, Stated: p.Value})
	}
	for _, p := range inferred {
		i := slices.IndexFunc(rows, func(r settingRow) bool { return r.Name == p.Name && r.Inferred == "" })
		if i < 0 {
			i, rows = len(rows), append(rows, settingRow{Name: p.Name})
		}
		rows[i].Inferred, rows[i].Why = p.Value, p.Why
	}
	return rows
}

type tableRow struct{ Label, Metric, Paper, Ours, Range, Tolerance, Mark, Note string }

func newSection(r *Report) section {
	s := section{Report: r, Which: r.seeds(), Class: verdictClass[r.Verdict], CPU: fmt.Sprintf("%.1f", r.CPUS), Rate: "-",
		DecidedBy: r.decided(), NoEvidence: r.noEvidence(), Setting: settingRows(r.Stated, r.Inferred)}
	if r.PacketHops > 0 && r.CPUS > 0 {
		s.Rate = fmt.Sprintf("%.1f", r.PacketHopsPerCPUS/1e6)
	}
	n := notesOf(r.Rows)
	s.Notes = n
	for _, row := range r.Rows {
		s.Table = append(s.Table, tableRow{row.Label, row.Metric, row.paper(), row.ours(), row.span(r.Seeds), row.tolerance(), row.mark(), n.mark(row)})
	}
	for _, c := range r.Charts {
		s.Pictures = append(s.Pictures, c.draw())
	}
	return s
}
