package fct

import (
	"fmt"
	"slices"

	"weft/bench/papers"
	"weft/bench/report"
	"weft/bench/stats"
)

// chartEnd is the percentile of slowdowns at which a chart ends, of the row that has the most:
// beyond are few flows.
const chartEnd = 99

// Charts has for each load the distribution of the slowdowns of all flows, a line for each row.
func Charts(results []Result) (charts []report.Chart) {
	var loads []float64
	for _, r := range results {
		if r.SizeClass == sizeClasses[0] && r.runs != nil && !slices.Contains(loads, r.Load) {
			loads = append(loads, r.Load)
		}
	}
	for _, load := range loads {
		c := report.Chart{Title: fmt.Sprintf("Slowdown at load %g", load), X: "completion time by that of a flow alone", Y: "part of the flows",
			Legend: "Of all rounds together. The chart ends at the 99th percentile of the row that has the most."}
		end := 0.0
		for _, r := range results {
			if r.Load != load || r.SizeClass != sizeClasses[0] || r.runs == nil {
				continue
			}
			var all []float64
			for _, run := range *r.runs {
				_, slow := slowdowns(run.samples)
				all = append(all, slow...)
			}
			if len(all) == 0 {
				continue
			}
			end = max(end, stats.Percentile(all, chartEnd))
			name := r.Policy
			if r.Measured == InSimulator {
				name += ", simulator"
			}
			if r.Void {
				name += ", void"
			}
			l := papers.CDF(name, all)
			c.Lines = append(c.Lines, report.ChartLine{Name: l.Name, X: l.X, Y: l.Y})
		}
		c.EndAt(end)
		charts = append(charts, c)
	}
	return charts
}
