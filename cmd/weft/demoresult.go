package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"weft/bench/failover"
	"weft/bench/permutation"
	"weft/bench/report"
	"weft/bench/stats"
	"weft/bench/testbed"
	"weft/internal/table"
	"weft/topology"
)

// outcome is what all runs of one row came to: medians, and samples pooled.
type outcome struct {
	testbed.Row
	runs []permutation.Result

	PercentOfIdeal   float64
	Mbit             []float64 // of all hosts in all runs
	Jain             float64
	Retransmits      int64
	RTTMicros        []float64
	OutOfOrderBefore int64
	OutOfOrderAfter  int64
	Shares           []report.Share
	IdlePercent      float64
	Links            []report.LinkUse // of the last run
}

func (o *outcome) summarise(d *demo) {
	var percent, jain, idle, retransmits, before, after []float64
	shares := make([][]float64, len(d.topology.spines()))
	for i, r := range o.runs {
		sum := 0.0
		for _, m := range r.Mbit {
			sum += m
		}
		percent = append(percent, percentOf(sum, d.ideals[i]))
		jain = append(jain, stats.Jain(r.Mbit))
		idle = append(idle, r.IdlePercent)
		retransmits = append(retransmits, float64(r.Counters.Retransmits))
		before = append(before, float64(r.Counters.OutOfOrderBefore))
		after = append(after, float64(r.Counters.OutOfOrderAfter))
		o.Mbit = append(o.Mbit, r.Mbit...)
		o.RTTMicros = append(o.RTTMicros, r.RTTMicros...)
		for spine, s := range d.topology.spineShares(r.Counters.Links) {
			shares[spine] = append(shares[spine], s)
		}
	}
	o.PercentOfIdeal = stats.Median(percent)
	o.Jain = stats.Median(jain)
	o.IdlePercent = stats.Median(idle)
	o.Retransmits = int64(math.Round(stats.Median(retransmits)))
	o.OutOfOrderBefore = int64(math.Round(stats.Median(before)))
	o.OutOfOrderAfter = int64(math.Round(stats.Median(after)))
	for i, name := range d.topology.spines() {
		o.Shares = append(o.Shares, report.Share{Path: name, Fraction: stats.Median(shares[i])})
	}
	last := o.runs[len(o.runs)-1]
	for id, l := range last.Counters.Links {
		capacity := d.linkRate(topology.LinkID(id)) * 1e6 / 8 * last.Elapsed.Seconds()
		o.Links = append(o.Links, report.LinkUse{Up: float64(l.Up) / capacity, Down: float64(l.Down) / capacity})
	}
}

// spines returns the switches of the top layer: a leaf-spine fabric has no cores.
func spines(t *topology.Topology) (top []topology.Node) {
	for node := range t.Nodes() {
		if len(top) > 0 && node.Layer != top[0].Layer {
			top = top[:0]
		}
		top = append(top, node)
	}
	return top
}

func spineName(t *topology.Topology, n topology.Node) string {
	if r, ok := t.CoreNumber(n.ID); ok {
		return fmt.Sprintf("3.%d", r)
	}
	return n.Name
}

// spineShares returns each spine's part of the bytes that all spines sent down.
func spineShares(t *topology.Topology, links []testbed.LinkBytes) []float64 {
	top := spines(t)
	shares := make([]float64, len(top))
	sum := 0.0
	for l := range t.Links() {
		if i := int(l.B - top[0].ID); i >= 0 {
			shares[i] += float64(links[l.ID].Down)
			sum += float64(links[l.ID].Down)
		}
	}
	for i := range shares {
		shares[i] /= max(sum, 1)
	}
	return shares
}

// outcomeJSON is an outcome as weft demo --json prints it.
type outcomeJSON struct {
	Policy         string             `json:"policy"`
	Label          string             `json:"label"`
	Fabric         string             `json:"fabric"`
	Permutations   int                `json:"permutations"`
	PercentOfIdeal float64            `json:"percent_of_ideal"`
	IdealMbit      float64            `json:"ideal_mbit_per_host"`
	Mbit           spread             `json:"mbit_per_host"`
	Jain           float64            `json:"jain"`
	Retransmits    int64              `json:"retransmits"`
	RTTP50         float64            `json:"rtt_p50_us"`
	RTTP99         float64            `json:"rtt_p99_us"`
	OutOfOrder     *outOfOrderJSON    `json:"out_of_order,omitempty"`
	SharePerPath   map[string]float64 `json:"share_per_path"`
	IdlePercent    float64            `json:"idle_percent"`
	Failover       []failover.Result  `json:"failover,omitempty"` // see addFailover
}

type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

type outOfOrderJSON struct {
	Before int64 `json:"before_resequencer"`
	After  int64 `json:"after_resequencer"`
}

func spreadOf(x []float64) spread {
	return spread{slices.Min(x), stats.Median(x), slices.Max(x)}
}

func (d *demo) json() []outcomeJSON {
	all := []outcomeJSON{}
	for _, o := range d.outcomes {
		j := outcomeJSON{
			Policy: o.Name, Label: d.describe(o.Row), Fabric: d.bed.Kind(), Permutations: len(o.runs),
			PercentOfIdeal: o.PercentOfIdeal, IdealMbit: d.idealMbit(), Mbit: spreadOf(o.Mbit), Jain: o.Jain,
			Retransmits: o.Retransmits, IdlePercent: o.IdlePercent,
			RTTP50: stats.Percentile(o.RTTMicros, 50), RTTP99: stats.Percentile(o.RTTMicros, 99),
			SharePerPath: make(map[string]float64),
		}
		if o.Resequences() {
			j.OutOfOrder = &outOfOrderJSON{o.OutOfOrderBefore, o.OutOfOrderAfter}
		}
		for _, s := range o.Shares {
			j.SharePerPath[s.Path] = s.Fraction
		}
		all = append(all, j)
	}
	d.addFailover(all)
	return all
}

func (d *demo) table(w io.Writer) error {
	of := "host"
	if d.options.matrix != nil {
		of = "stream"
	}
	fmt.Fprintf(w, "\n%s %s, %s, %s, median of %d permutation(s)\n",
		d.topology, d.bed.Kind(), d.rates(), d.load(), d.options.permutations)
	fmt.Fprintf(w, "%s\n\n", table.Paragraph(fmt.Sprintf("ideal: %.2f Mbit/s a %s: %s", d.idealMbit(), of, d.idealNote())))
	tw := table.NewWriter(w, 1)
	fmt.Fprintln(tw, "policy\t% of ideal\tMbit/s min/median/max\tJain\tresent\tRTT p50/p99 ms\tout of order\tafter reseq.\tspine shares %\tidle %\t")
	for _, o := range d.outcomes {
		m := spreadOf(o.Mbit)
		before, after := "-", "-"
		if o.Resequences() {
			before, after = fmt.Sprint(o.OutOfOrderBefore), fmt.Sprint(o.OutOfOrderAfter)
		}
		var low, high float64 = 1, 0
		for _, s := range o.Shares {
			low, high = min(low, s.Fraction), max(high, s.Fraction)
		}
		idle := "-"
		if o.IdlePercent >= 0 {
			idle = fmt.Sprintf("%.0f", o.IdlePercent)
		}
		fmt.Fprintf(tw, "%s\t%.1f\t%s/%s/%s\t%.3f\t%d\t%s/%s\t%s\t%s\t%.1f-%.1f\t%s\t\n",
			o.Name, o.PercentOfIdeal, digits(m.Min), digits(m.Median), digits(m.Max), o.Jain, o.Retransmits,
			digits(stats.Percentile(o.RTTMicros, 50)/1e3), digits(stats.Percentile(o.RTTMicros, 99)/1e3),
			before, after, 100*low, 100*high, idle)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return d.failoverTable(w)
}

// digits writes a number with three digits, and larger ones whole.
func digits(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func (d *demo) html() report.Report {
	r := report.Report{
		Title:     "weft demo",
		Topology:  d.computed(),
		Fabric:    d.bed.Kind(),
		RateMbit:  d.options.rate,
		IdealMbit: d.idealMbit(),
		IdealNote: d.idealNote(),
		Command:   d.run.Command,
		Facts:     append(d.parameters(), d.run.facts()...),
		Notes:     d.notes,
		Tables:    d.failoverSection(),
	}
	for _, o := range d.outcomes {
		row := report.Row{
			Policy: o.Name, Label: d.describe(o.Row), Source: o.Source,
			PercentOfIdeal: o.PercentOfIdeal, PerHostMbit: o.Mbit, Jain: o.Jain,
			Retransmits: o.Retransmits, IdlePercent: o.IdlePercent,
			RTTMicros: o.RTTMicros, SharePerPath: o.Shares, Links: o.Links,
		}
		if o.Resequences() {
			row.Reordering = &report.Reordering{Before: o.OutOfOrderBefore, After: o.OutOfOrderAfter}
		}
		row.Paper = d.published(o.Row)
		r.Rows = append(r.Rows, row)
	}
	r.PaperNote = d.paperNote(r.Rows)
	r.Headline = d.headline()
	return r
}

// headline compares drb with the kernel's ECMP, or with weft's where there is
// no kernel.
func (d *demo) headline() string {
	find := func(name string) *outcome {
		for i := range d.outcomes {
			if d.outcomes[i].Name == name {
				return &d.outcomes[i]
			}
		}
		return nil
	}
	base, drb := find("kernel-ecmp"), find("drb")
	if base == nil {
		base = find("ecmp")
	}
	if base == nil || drb == nil || base.PercentOfIdeal == 0 {
		return ""
	}
	return fmt.Sprintf("drb carries %.0f %% of the ideal, %s %.0f %%: %.2f times as much.",
		drb.PercentOfIdeal, base.Name, base.PercentOfIdeal, drb.PercentOfIdeal/base.PercentOfIdeal)
}
