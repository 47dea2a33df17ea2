// Package report writes the results of a demo as one HTML file that needs no other: no
// script, no font, no external picture. It reads well in light and dark mode, on paper,
// and without telling colours apart.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"weft/topology"
)

// Report is the result of a demo. Rows are shown in their order, and empty parts
// are left out. Numbers that are not finite count as 0.
type Report struct {
	Title    string
	Headline string             // the result in a sentence
	Topology *topology.Topology // drawn if it has at most 256 hosts
	Fabric   string             // "in network namespaces", "in memory, in virtual time"
	RateMbit float64            // of a link, Mbit/s
	// IdealMbit is the goodput of a host without collisions, in Mbit/s. IdealNote
	// says how it is computed.
	IdealMbit float64
	IdealNote string
	Command   string
	// Facts are the run's parameters, and where it is from; those of the fields above come first.
	Facts []Fact
	Notes []string
	// PaperNote says what the rows' Paper is of.
	PaperNote string
	Rows      []Row
	Tables    []Table // of what else was measured
}

// Row is the result of one policy.
type Row struct {
	Policy         string
	Label          string // what it is, in words
	Source         string // where it comes from
	PercentOfIdeal float64
	PerHostMbit    []float64 // goodput by host, Mbit/s
	Jain           float64
	Retransmits    int64
	Paper          *float64  // what a paper has for PercentOfIdeal; nil: none has
	IdlePercent    float64   // of the machine's processors; negative if it does not matter or is not known
	RTTMicros      []float64 // samples in any order, µs
	Reordering     *Reordering
	SharePerPath   []Share
	Links          []LinkUse // by topology.LinkID; empty: not measured
}

// Reordering counts packets out of order before and after the resequencer.
type Reordering struct{ Before, After int64 }

// Share is a path's part of the traffic, 0 to 1.
type Share struct {
	Path     string
	Fraction float64
}

// LinkUse is the utilisation of a link in both directions, 0 to 1.
type LinkUse struct{ Up, Down float64 }

var (
	//go:embed report.html.tmpl
	page string
	//go:embed style.css
	style string

	tmpl = template.Must(template.New("report").Funcs(template.FuncMap{"at": at}).Parse(page))
)

// at writes a position or a size in a picture; less than a tenth cannot be seen.
func at(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// Write writes the report as HTML in UTF-8. Its errors are w's.
func Write(w io.Writer, r Report) error {
	var b bytes.Buffer
	if err := tmpl.Execute(&b, newView(r)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
