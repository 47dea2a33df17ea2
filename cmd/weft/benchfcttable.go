package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/bench/fct"
	"weft/bench/report"
	"weft/internal/table"
)

// fctHead is of fctRows.
var fctHead = []string{"policy", "where", "load", "sizes", "flows", "unfinished", "mean ms", "least to most", "p50", "p95", "p99", "p99.9", "slowdown p50", "p99", "SYNs again", "timeouts", "idle %"}

// fctRows leaves out classes without flows. A row without figures has one line for each load.
func fctRows(results []fct.Result) (rows [][]string) {
	for i, r := range results {
		if r.Rounds == 0 && (i == 0 || results[i-1].Policy != r.Policy || results[i-1].Load != r.Load) {
			row := append([]string{r.Policy, string(r.Where), fmt.Sprintf("%g", r.Load)}, slices.Repeat([]string{"-"}, len(fctHead)-4)...)
			rows = append(rows, append(row, "ERROR, see below"))
		}
		if r.Flows == 0 {
			continue
		}
		row := []string{r.Policy, string(r.Where), fmt.Sprintf("%g", r.Load), r.SizeClass, begunCell(r), fmt.Sprint(r.Unfinished),
			fmt.Sprintf("%.1f", r.MeanMs), fmt.Sprintf("%.0f to %.0f", r.MeanLowMs, r.MeanHighMs)}
		for _, ms := range []*float64{&r.P50Ms, r.P95Ms, r.P99Ms, r.P999Ms} {
			row = append(row, tailCell(ms))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", r.SlowdownP50), tailCell(r.SlowdownP99), countCell(r.SYNRetransmits), countCell(r.Timeouts), idleCell(r)))
	}
	return rows
}

// tailCell is a percentile, if there are enough samples for it.
func tailCell(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *x)
}

// fctErrors has a line for each row without figures, and one for each row and load of which rounds
// failed.
func fctErrors(results []fct.Result) string {
	var s strings.Builder
	for i, r := range results {
		if i > 0 {
			before := results[i-1]
			if r.Policy == before.Policy && r.Error == before.Error && (r.Load == before.Load || r.Rounds == 0) {
				continue
			}
		}
		switch {
		case r.Error == "":
		case r.Rounds == 0:
			fmt.Fprintf(&s, "%s has no figures: %s\n", r.Policy, r.Error)
		default:
			fmt.Fprintf(&s, "%s, load %g: %d of %d rounds failed: %s\n", r.Policy, r.Load, r.Failed, r.Failed+r.Rounds, r.Error)
		}
	}
	return s.String()
}

// fctFailed is an error if rows have no figures under a load.
func fctFailed(results []fct.Result) error {
	failed := make(map[string]bool)
	for _, r := range results {
		if r.Rounds == 0 {
			failed[r.Policy] = true
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("bench fct: rows without figures: %d; the results say why", len(failed))
	}
	return nil
}

// slowdownAbout says what slowdowns divide by, in a line; it is empty if there are no figures.
func slowdownAbout(results []fct.Result) string {
	i := slices.IndexFunc(results, func(r fct.Result) bool { return r.Rounds > 0 })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("All slowdowns divide by what a flow of the same size takes between hosts as far apart, without a failure, with %s: %.2f ms for one byte at most. "+
		"A percentile is - unless each round with such flows has so many that one is above it.\n", results[i].SlowdownBase, results[i].BaseByteMs)
}

// besides reports whether there are results of the lab and of the simulator.
func (o *benchFCTOptions) besides(results []fct.Result) bool {
	figures := func(measured string) bool {
		return slices.ContainsFunc(results, func(r fct.Result) bool { return r.Measured == measured && r.Rounds > 0 })
	}
	return o.sim && figures(fct.InLab) && figures(fct.InSimulator)
}

// countCell is empty where nobody counted.
func countCell(n float64) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprintf("%g", n)
}

// begunCell is how many of the planned flows have begun.
func begunCell(r fct.Result) string {
	if r.Begun == r.Flows {
		return fmt.Sprint(r.Flows)
	}
	return fmt.Sprintf("%d of %d", r.Begun, r.Flows)
}

// idleCell says where the row is from if its processors do not matter, and if it is void.
func idleCell(r fct.Result) string {
	switch {
	case r.Measured == fct.InSimulator && r.Void:
		return "simulated VOID"
	case r.Measured == fct.InSimulator:
		return "simulated"
	}
	cell := fmt.Sprintf("%.0f", r.IdlePercent)
	if r.Void {
		cell += " VOID"
	}
	if r.Failed > 0 {
		cell += ", see below"
	}
	return cell
}

// fctTable writes a table, of whose first columns so many say what a row is of.
func fctTable(w io.Writer, keys int, head []string, rows [][]string) error {
	return table.Table{Head: head, Rows: rows, Text: 1, Keys: keys}.Write(w, table.Width)
}

// besideHead is of besideRows.
var besideHead = []string{"policy", "load", "sizes", "lab mean ms", "simulator", "lab/simulator", "lab p99 ms", "simulator", "lab/simulator", "lab slowdown p50", "simulator", "SYNs again", "idle %"}

// besideRows puts what was measured in the lab beside the simulator's of the same row.
func besideRows(results []fct.Result) (rows [][]string) {
	type key struct {
		policy, class string
		load          float64
	}
	simulated := make(map[key]fct.Result)
	for _, r := range results {
		if r.Measured == fct.InSimulator {
			simulated[key{r.Policy, r.SizeClass, r.Load}] = r
		}
	}
	ratio := func(a, b *float64) string {
		if a == nil || b == nil || *b == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", *a / *b)
	}
	for _, r := range results {
		s, ok := simulated[key{r.Policy, r.SizeClass, r.Load}]
		if r.Measured == fct.InSimulator || r.Flows == 0 {
			continue
		}
		row := []string{r.Policy, fmt.Sprintf("%g", r.Load), r.SizeClass, fmt.Sprintf("%.1f", r.MeanMs)}
		if ok {
			row = append(row, fmt.Sprintf("%.1f", s.MeanMs), ratio(&r.MeanMs, &s.MeanMs), tailCell(r.P99Ms), tailCell(s.P99Ms), ratio(r.P99Ms, s.P99Ms),
				fmt.Sprintf("%.2f", r.SlowdownP50), fmt.Sprintf("%.2f", s.SlowdownP50), countCell(r.SYNRetransmits), idleCell(r))
		} else {
			row = append(row, "none", "", tailCell(r.P99Ms), "none", "", fmt.Sprintf("%.2f", r.SlowdownP50), "none", countCell(r.SYNRetransmits), idleCell(r))
		}
		rows = append(rows, row)
	}
	return rows
}

// confidence says what a table's "least to most" is.
func (o *benchFCTOptions) confidence() string {
	return fmt.Sprintf("Figures are medians of %d rounds, failed ones aside. Least to most is of the rounds' means: with n rounds the median of all lies between them with 100·(1-2^(1-n)) %%, here %.0f %%. "+
		"Rows marked VOID do not measure the fabric: processors were too busy, or flows or subflows were missing.", o.Seeds, fct.Confidence(o.Seeds))
}

// page is the HTML report.
func (o *benchFCTOptions) page(results []fct.Result) report.Charts {
	p := report.Charts{Title: "Flow completion times", Command: commandLine(), Charts: fct.Charts(results),
		Facts: append([]report.Fact{{Name: "Topology", Value: o.Options.Topology.String()}, {Name: "Link rate", Value: fmt.Sprintf("%g Mbit/s", o.RateMbit)},
			{Name: "Traffic", Value: o.Traffic}, {Name: "Failure", Value: results[0].Failure}, {Name: "Workload", Value: fmt.Sprintf("%s, sizes times %g", results[0].Workload, o.Scale)},
			{Name: "Flowcells", Value: fmt.Sprintf("%d bytes", o.demo.flowcell)}}, o.about.facts()...),
		Tables: []report.Table{{Title: "Completion times", About: slowdownAbout(results) + o.confidence(), Head: fctHead, Rows: fctRows(results)}}, Notes: o.told}
	if o.besides(results) {
		p.Tables = append(p.Tables, report.Table{Title: "Lab beside simulator", About: besideAbout, Head: besideHead, Rows: besideRows(results)})
	}
	return p
}

// besideAbout says what the simulator has of the lab.
const besideAbout = "The simulator plays the same flows. It has the lab's rates, queues and measured delay, and a TCP with Linux's timeouts, initial window and headers. Other than the lab: queues count bytes, where the lab's count packets, so the lab may lose a SYN where the simulator does not (a SYN that is sent again costs a second; the column counts them in rows of the kernel's TCP, of all sizes); the measured delay includes the programs'; links store and forward each packet, where the lab's token buckets pass two at once when they have been idle; NewReno in place of cubic, without tail loss probes; reordering is put in order at the receiver, where the kernel resends and undoes."
