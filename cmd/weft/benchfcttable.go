package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"weft/bench/fct"
	"weft/bench/report"
)

// fctHead is of fctRows.
var fctHead = []string{"policy", "where", "load", "sizes", "flows", "unfinished", "mean ms", "least to most", "p50", "p95", "p99", "p99.9", "slowdown p50", "p99", "SYNs again", "timeouts", "idle %"}

// fctRows leaves out classes without flows. A row without figures has one line for each load.
func fctRows(results []fct.Result) (rows [][]string) {
	for i, r := range results {
		if r.Error != "" && (i == 0 || results[i-1].Policy != r.Policy || results[i-1].Load != r.Load) {
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

// fctErrors has a line for each row without figures.
func fctErrors(results []fct.Result) string {
	var s strings.Builder
	for i, r := range results {
		if r.Error != "" && (i == 0 || results[i-1].Policy != r.Policy) {
			fmt.Fprintf(&s, "%s has no figures: %s\n", r.Policy, r.Error)
		}
	}
	return s.String()
}

// fctFailed is an error if rows have no figures.
func fctFailed(results []fct.Result) error {
	if failed := strings.Count(fctErrors(results), "\n"); failed > 0 {
		return fmt.Errorf("bench fct: rows without figures: %d; the results say why", failed)
	}
	return nil
}

// slowdownAbout says what slowdowns divide by.
func slowdownAbout(results []fct.Result) string {
	r := results[0]
	return fmt.Sprintf("All slowdowns divide by what a flow of the same size takes with %s: %.2f ms for one byte. "+
		"A percentile is - if no round has so many samples that one is above it.", r.SlowdownBase, r.BaseByteMs)
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
	case r.Void:
		return fmt.Sprintf("%.0f VOID", r.IdlePercent)
	}
	return fmt.Sprintf("%.0f", r.IdlePercent)
}

func fctTable(w io.Writer, head []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(tw, strings.Join(row, "\t")+"\t")
	}
	return tw.Flush()
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
	return fmt.Sprintf("Figures are medians of %d rounds. Least to most is of the rounds' means: with n rounds the median of all lies between them with 100·(1-2^(1-n)) %%, here %.0f %%. "+
		"Rows marked VOID had processors that were too busy: they measure the machine.", o.Seeds, fct.Confidence(o.Seeds))
}

// page is the HTML report.
func (o *benchFCTOptions) page(results []fct.Result) report.Charts {
	p := report.Charts{Title: "Flow completion times", Command: commandLine(), Charts: fct.Charts(results),
		Facts: []report.Fact{{Name: "Topology", Value: o.Options.Topology.String()}, {Name: "Link rate", Value: fmt.Sprintf("%g Mbit/s", o.RateMbit)},
			{Name: "Traffic", Value: o.Traffic}, {Name: "Failure", Value: results[0].Failure}, {Name: "Workload", Value: fmt.Sprintf("%s, sizes times %g", results[0].Workload, o.Scale)},
			{Name: "Seed", Value: fmt.Sprint(o.Seed)}, {Name: "Machine", Value: o.Machine}},
		Tables: []report.Table{{Title: "Completion times", About: slowdownAbout(results) + " " + o.confidence(), Head: fctHead, Rows: fctRows(results)}}, Notes: o.told}
	if o.sim {
		p.Tables = append(p.Tables, report.Table{Title: "Lab beside simulator", About: besideAbout, Head: besideHead, Rows: besideRows(results)})
	}
	return p
}

// besideAbout says what the simulator has of the lab.
const besideAbout = "The simulator plays the same flows. It has the lab's rates, queues and measured delay, and a TCP with Linux's timeouts, initial window and headers. Other than the lab: queues count bytes, where the lab's count packets, so the lab may lose a SYN where the simulator does not (a SYN that is sent again costs a second; the column counts them in rows of the kernel's TCP, of all sizes); the measured delay includes the programs'; links store and forward each packet, where the lab's token buckets pass two at once when they have been idle; NewReno in place of cubic, without tail loss probes; reordering is put in order at the receiver, where the kernel resends and undoes. Slowdowns of both divide by what a flow takes alone in the idle lab."
