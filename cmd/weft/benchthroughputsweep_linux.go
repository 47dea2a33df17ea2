package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/report"
	"weft/bench/testbed"
	"weft/bench/throughput"
)

// sweepTime is the warmup, and the duration, of each run of a sweep where no flag says another.
const sweepTime = 500 * time.Millisecond

// runSweep is weft bench throughput --sweep.
func (o *benchThroughputOptions) runSweep(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if !changed("rounds") {
		o.rounds = 1
	}
	if !changed("warmup") {
		o.warmup = sweepTime
	}
	if !changed("duration") {
		o.duration = sweepTime
	}
	if !changed("connections") {
		o.connections = throughput.SweepConnections
	}
	if !changed("cases") {
		o.cases = throughput.SweepCases
	}
	if first := throughput.SweepCases[0]; !slices.Contains(o.cases, first) {
		return usagef("--cases: %s is what a sweep compares with the others; add it", first)
	}
	cases, err := throughput.Select(o.cases)
	if err != nil {
		return usagef("--cases: %w", err)
	}
	rates, troubles := o.regimes(changed)
	if len(troubles) == 0 {
		return errors.New("no cell of the sweep has these --paths, --loss and --skew together; leave --sweep out to measure them")
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return fmt.Errorf("bench throughput: %w", err)
	}
	file, err := newReportFile("plot", o.plot)
	if err != nil {
		return err
	}
	defer file.discard()
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(0, 0)
	p := newProgress(cmd.Context(), "measuring")
	options, err := o.options(cases, p, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	cells, err := throughput.Sweep(cmd.Context(), options, rates, troubles)
	p.end()
	if err != nil {
		return err
	}
	h := sweepMap(cells, troubles, o.connections)
	if err := file.write(h.Write); err != nil {
		return err
	}
	return o.putResults(cmd.OutOrStdout(), run, cells, func(w io.Writer) error {
		fmt.Fprintf(w, "%v\n\n", run)
		return h.WriteMarkdown(w)
	})
}

// regimes are those of the sweep that have the values of the flags that are given.
func (o *benchThroughputOptions) regimes(changed func(string) bool) (rates []float64, troubles []throughput.Trouble) {
	rates = throughput.SweepRates
	if changed("spine-rate") {
		rates = []float64{o.spineRate}
	}
	skew := o.skew.Seconds() * 1e3
	for _, t := range throughput.Troubles {
		switch {
		case changed("paths") && t.Paths != o.paths, changed("loss") && t.Loss != o.loss/100, changed("skew") && t.SkewMs != skew:
		default:
			troubles = append(troubles, t)
		}
	}
	return rates, troubles
}

// sweepMap is the heat map of a sweep: a row for each rate and number of connections.
func sweepMap(cells []throughput.Cell, troubles []throughput.Trouble, connections []int) report.HeatMap {
	h := report.HeatMap{Title: "weft host's defaults, in percent of the best fixed choice", XTitle: "paths, trouble", YTitle: "Mbit/s a path, connections"}
	for i, t := range troubles {
		name := "even"
		switch {
		case t.Loss > 0:
			name = fmt.Sprintf("%g %%", 100*t.Loss)
		case t.SkewMs > 0:
			name = fmt.Sprintf("%g ms", t.SkewMs)
		}
		if i == 0 || t.Paths != troubles[i-1].Paths {
			h.Groups = append(h.Groups, report.HeatGroup{Name: strconv.Itoa(t.Paths)})
		}
		g := &h.Groups[len(h.Groups)-1]
		g.Columns = append(g.Columns, name)
	}
	for ofRate := range slices.Chunk(cells, len(troubles)*len(connections)) {
		for i, n := range connections {
			rate := "no rate"
			if r := ofRate[0].SpineRate; r != 0 {
				rate = fmt.Sprintf("%g", r)
			}
			row := report.HeatRow{Name: fmt.Sprintf("%s, %d", rate, n)}
			for j := range troubles {
				v := ofRate[j*len(connections)+i].OfBest
				if v == 0 {
					v = math.NaN() // one of the two is missing
				}
				row.Cells = append(row.Cells, v)
			}
			h.Rows = append(h.Rows, row)
		}
	}
	return h
}
