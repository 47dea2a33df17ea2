package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"weft/bench/failover"
	"weft/bench/report"
	"weft/internal/table"
)

// commandLine is what this was called as.
func commandLine() string { return strings.Join(append([]string{"weft"}, os.Args[1:]...), " ") }

// failoverRows are the rows of the table, its head first.
func failoverRows(results []failover.Result) [][]string {
	rows := [][]string{{"failure", "agents", "repetitions", "p50 ms", "p99 ms", "paused", "p99 of the others", "not closed", "lost", "stuck",
		"others kept", "restored p50 ms", "p99", "Mbit/s before", "during", "after", "idle %"}}
	for _, r := range results {
		paused, steady := "?", "?"
		if r.Paused >= 0 {
			paused, steady = fmt.Sprint(r.Paused), fmt.Sprintf("%.1f", r.SteadyP99)
		}
		rows = append(rows, []string{r.Kind, fmt.Sprint(r.Agents), fmt.Sprint(r.Repetitions),
			fmt.Sprintf("%.1f", r.P50), fmt.Sprintf("%.1f", r.P99), paused, steady,
			fmt.Sprint(r.NotClosed), fmt.Sprint(r.LostConnections), fmt.Sprint(r.StuckConnections),
			fmt.Sprintf("%d of %d", r.OthersKept, r.OthersExpected),
			fmt.Sprintf("%.0f", r.RestoredP50), fmt.Sprintf("%.0f", r.RestoredP99),
			fmt.Sprintf("%.1f", r.GoodputBefore), fmt.Sprintf("%.1f", r.GoodputDuring), fmt.Sprintf("%.1f", r.GoodputAfter),
			fmt.Sprintf("%.0f", r.IdlePercent)})
	}
	return rows
}

func failoverTable(w io.Writer, results []failover.Result) error {
	return table.Aligned(w, failoverRows(results))
}

// failoverCharts draws the distributions.
func failoverCharts(run runInfo, results []failover.Result) report.Charts {
	c := report.Charts{Title: "From a failure to the last packet into the hole", Command: commandLine()}
	chart := report.Chart{
		Title: "Last packet into the hole", X: "ms since just before the failure", Y: "% of the failures",
		Legend: "From just before the failure to when the last packet that needed what had failed left a host's uplink.",
	}
	for _, r := range results {
		name := r.Kind + ", without agents"
		if r.Agents {
			name = r.Kind + ", with agents"
		}
		chart.Lines = append(chart.Lines, distribution(name, r.Samples))
	}
	rows := failoverRows(results)
	c.Charts = []report.Chart{chart}
	c.Tables = []report.Table{{Title: "Results", Head: rows[0], Rows: rows[1:]}}
	if len(results) > 0 {
		r := results[0]
		c.Facts = append([]report.Fact{{Name: "Topology", Value: r.Topology}, {Name: "Link rate", Value: fmt.Sprintf("%g Mbit/s", r.RateMbit)}}, run.facts()...)
	}
	return c
}

// distribution is the part of the failures that were over by a time, as steps.
func distribution(name string, samples []failover.Repetition) report.ChartLine {
	var ms []float64
	for _, s := range samples {
		ms = append(ms, s.LeftMs)
	}
	slices.Sort(ms)
	l := report.ChartLine{Name: name, X: []float64{0}, Y: []float64{0}}
	for i, x := range ms {
		l.X = append(l.X, x, x)
		l.Y = append(l.Y, 100*float64(i)/float64(len(ms)), 100*float64(i+1)/float64(len(ms)))
	}
	return l
}

// degradationRows are the rows of the table, its head first.
func degradationRows(d failover.Degradation) [][]string {
	rows := [][]string{{"event", "from s", "to s", "Mbit/s", "ideal", "% of ideal", "% of the first", "expected", "stable after s"}}
	for _, l := range d.Levels {
		rows = append(rows, []string{l.Event, fmt.Sprintf("%.1f", l.FromS), fmt.Sprintf("%.1f", l.ToS),
			fmt.Sprintf("%.1f", l.Mbit), fmt.Sprintf("%.1f", l.IdealMbit), fmt.Sprintf("%.1f", 100*l.OfIdeal),
			fmt.Sprintf("%.1f", 100*l.OfFirst), fmt.Sprintf("%.1f", 100*l.WantFirst), fmt.Sprintf("%.1f", l.StableS)})
	}
	return rows
}

func degradationTable(w io.Writer, d failover.Degradation) error {
	if err := table.Aligned(w, degradationRows(d)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nlost connections: %d; processors idle: %.0f %%\n", d.LostConnections, d.IdlePercent)
	return err
}

// degradationCharts draws DRB's Fig. 12.
func degradationCharts(run runInfo, d failover.Degradation) report.Charts {
	var measured, ideal report.ChartLine
	measured.Name = "goodput of all receivers"
	for _, p := range d.Points {
		measured.X, measured.Y = append(measured.X, p.S), append(measured.Y, p.Mbit)
	}
	ideal.Name, ideal.Expected = "what the fabric can carry (max-min fair, evenly spread)", true
	chart := report.Chart{Title: "Goodput", X: "s", Y: "Mbit/s",
		Legend: "A point every 100 ms. The dashed line is computed from the topology; acknowledgements are not subtracted from it."}
	for i, l := range d.Levels {
		ideal.X, ideal.Y = append(ideal.X, l.FromS, l.ToS), append(ideal.Y, l.IdealMbit, l.IdealMbit)
		if i > 0 {
			chart.Marks = append(chart.Marks, report.Mark{X: l.FromS, Name: l.Event})
		}
	}
	chart.Lines = []report.ChartLine{measured, ideal}
	rows := degradationRows(d)
	return report.Charts{
		Title:    "Bouncing switches are taken away and brought back (DRB Fig. 12)",
		Headline: fmt.Sprintf("%d connections were lost.", d.LostConnections),
		Facts: append([]report.Fact{{Name: "Topology", Value: d.Topology}, {Name: "Link rate", Value: fmt.Sprintf("%g Mbit/s", d.RateMbit)},
			{Name: "Agents", Value: fmt.Sprint(d.Agents)}, {Name: "Processors idle", Value: fmt.Sprintf("%.0f %%", d.IdlePercent)}}, run.facts()...),
		Charts:  []report.Chart{chart},
		Tables:  []report.Table{{Title: "Levels", Head: rows[0], Rows: rows[1:]}},
		Command: commandLine(),
	}
}
