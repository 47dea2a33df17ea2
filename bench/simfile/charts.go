package simfile

import (
	"fmt"
	"slices"

	"weft/bench/papers"
	"weft/bench/report"
	"weft/bench/stats"
)

// chartEnd is the percentile at which a chart of completion times ends, of the policy that has
// the most: beyond are few flows.
const chartEnd = 99

// Charts has for each load the distributions of completion times and of what hosts received, a
// line for each policy. Samples are those of all seeds together.
func Charts(results []Result) (charts []report.Chart) {
	for i := 0; i < len(results); {
		n := i + 1
		for n < len(results) && results[n].Policy != results[i].Policy {
			n++
		}
		at := ""
		if results[i].Load != nil {
			at = fmt.Sprintf(" at load %g", *results[i].Load)
		}
		times := report.Chart{Title: "Completion times" + at, X: "ms", Y: "part of the flows", Legend: "The chart ends at the 99th percentile of the policy that has the most."}
		hosts := report.Chart{Title: "Goodput" + at, X: "Mbit/s received", Y: "part of the hosts"}
		end := 0.0
		for _, r := range results[i:n] {
			if len(r.took) > 0 {
				end = max(end, stats.Percentile(r.took, chartEnd))
				times.Lines = append(times.Lines, line(r.Policy, r.took))
			}
			hosts.Lines = append(hosts.Lines, line(r.Policy, r.perHost))
		}
		times.EndAt(end)
		charts = append(charts, times, hosts)
		i = n
	}
	return charts
}

// line is a distribution.
func line(name string, samples []float64) report.ChartLine {
	l := papers.CDF(name, slices.Clone(samples))
	return report.ChartLine{Name: l.Name, X: l.X, Y: l.Y}
}
