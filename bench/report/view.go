package report

import (
	"fmt"
	"html/template"
	"slices"

	"weft/bench/stats"
)

// view is the report as the template shows it: positions computed, numbers
// made words.
type view struct {
	Report
	Style      template.CSS
	Facts      []Fact // the report's come last
	Papers     bool   // rows have the paper's points
	Table      []tableRow
	Goodput    bars
	CDFs       []cdf
	Reordering bars
	Fabrics    []fabric
	Scale      []scaleStep
}

type tableRow struct {
	Series                               series
	Policy, Label, Source                string
	Goodput, Paper                       string
	Hosts, Jain, Retransmits             string
	RTTMedian, RTTTail, Reordering, Idle string
	Best                                 bool
}

// series is the colour, and for lines the dash, that stands for a row; there
// are as many as the style sheet has.
type series int

const numSeries = 9

// Class is the series' class in the style sheet.
func (s series) Class() string { return fmt.Sprintf("s%d", int(s)%numSeries) }

// missing stands for what was not measured.
const missing = "–"

func newView(r Report) view {
	r.Rows = slices.Clone(r.Rows)
	for i := range r.Rows {
		r.Rows[i] = r.Rows[i].finite()
	}
	v := view{
		Report:     r,
		Style:      template.CSS(style),
		Facts:      facts(r),
		Goodput:    goodputBars(r),
		Reordering: reorderingBars(r),
		Scale:      scale(),
	}
	best := 0.0
	for _, row := range r.Rows {
		best = max(best, row.PercentOfIdeal)
	}
	for i, row := range r.Rows {
		t := newTableRow(row)
		t.Series, t.Best = series(i), best > 0 && row.PercentOfIdeal == best
		v.Papers = v.Papers || row.Paper != nil
		v.Table = append(v.Table, t)
	}
	v.CDFs = cdfs(r)
	if r.Topology != nil && r.Topology.NumHosts() <= maxDrawnHosts {
		plan := newLayout(r.Topology)
		for i, row := range r.Rows {
			if len(row.Links) == r.Topology.NumLinks() || len(row.SharePerPath) > 0 {
				v.Fabrics = append(v.Fabrics, newFabric(plan, r.Topology, series(i), row))
			}
		}
	}
	return v
}

// finite returns a copy with all numbers finite.
func (r Row) finite() Row {
	r.PercentOfIdeal = finite(r.PercentOfIdeal)
	r.Jain = finite(r.Jain)
	if r.Paper != nil {
		paper := finite(*r.Paper)
		r.Paper = &paper
	}
	r.IdlePercent = finite(r.IdlePercent)
	r.PerHostMbit = slices.Clone(r.PerHostMbit)
	for i, x := range r.PerHostMbit {
		r.PerHostMbit[i] = finite(x)
	}
	r.RTTMicros = slices.Clone(r.RTTMicros)
	for i, x := range r.RTTMicros {
		r.RTTMicros[i] = finite(x)
	}
	r.SharePerPath = slices.Clone(r.SharePerPath)
	for i, s := range r.SharePerPath {
		r.SharePerPath[i].Fraction = finite(s.Fraction)
	}
	r.Links = slices.Clone(r.Links)
	for i, l := range r.Links {
		r.Links[i] = LinkUse{finite(l.Up), finite(l.Down)}
	}
	return r
}

func facts(r Report) (f []Fact) {
	add := func(name, value string) {
		if value != "" {
			f = append(f, Fact{name, value})
		}
	}
	if r.Topology != nil {
		add("Topology", fmt.Sprintf("%v: %d hosts, %d switches, %d links", r.Topology,
			r.Topology.NumHosts(), r.Topology.NumNodes()-r.Topology.NumHosts(), r.Topology.NumLinks()))
	}
	add("Fabric", r.Fabric)
	if rate := finite(r.RateMbit); rate > 0 {
		add("Link rate", mbit(rate))
	}
	if ideal := finite(r.IdealMbit); ideal > 0 {
		add("Ideal goodput of a host", mbit(ideal))
	}
	return append(f, r.Facts...)
}

func newTableRow(r Row) tableRow {
	t := tableRow{
		Policy: r.Policy, Label: r.Label, Source: r.Source,
		Goodput:     percent(r.PercentOfIdeal),
		Paper:       missing,
		Hosts:       missing,
		Jain:        fmt.Sprintf("%.3f", r.Jain),
		Retransmits: count(r.Retransmits),
		RTTMedian:   missing, RTTTail: missing, Reordering: missing,
		Idle: idle(r.IdlePercent),
	}
	if r.Paper != nil {
		t.Paper = percent(*r.Paper)
	}
	if x := r.PerHostMbit; len(x) > 0 {
		t.Hosts = fmt.Sprintf("%s / %s / %s", digits(slices.Min(x)), digits(stats.Median(x)), digits(slices.Max(x)))
	}
	if x := r.RTTMicros; len(x) > 0 {
		t.RTTMedian, t.RTTTail = micros(stats.Percentile(x, 50)), micros(stats.Percentile(x, 99))
	}
	if o := r.Reordering; o != nil {
		t.Reordering = count(o.Before) + " → " + count(o.After)
	}
	return t
}
