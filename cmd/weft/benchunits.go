package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weft/bench/report"
	"weft/bench/units"
)

// unitsResult is a row of weft bench units.
type unitsResult struct {
	RateMbit    float64            `json:"rate_mbit"`
	Paths       int                `json:"paths"`
	Connections int                `json:"connections"`
	Unit        string             `json:"unit"`            // that auto takes
	Ideal       map[string]float64 `json:"ideal_percent"`   // goodput by policy
	OfBest      float64            `json:"of_best_percent"` // auto's goodput, of the best of the others'
}

func newBenchUnitsCmd() *cobra.Command {
	var o resultOutput
	var quick bool
	var seed uint64
	var plot string
	cmd := &cobra.Command{
		Use:   "units",
		Short: "What takes a path of its own: policy auto against flowcells of 64 KB and packets, in simulated time",
		Long: `Units sends from one host to another by several paths, over rates of links, numbers of
paths and connections, in simulated time: under policy auto, whose unit fits the links, and
under its two ends. It prints a heat map: auto's goodput in percent of that of the better of the
two, medians of three runs. --json has the goodput of each. The result depends on --seed alone.
Processors are not simulated; weft bench throughput measures what a unit costs.`,
		Example: "  weft bench units --plot units.svg",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := newReportFile("plot", plot)
			if err != nil {
				return err
			}
			defer file.discard()
			axes := units.Whole
			if quick {
				axes = units.Quick
			}
			if err := o.openResults(); err != nil {
				return err
			}
			defer o.discardResults()
			run := newRunInfo(seed, 1)
			run.tell()
			p := newProgress(cmd.Context(), "simulating")
			all, err := units.Sweep(cmd.Context(), axes, seed, p.parts)
			p.end()
			if err != nil {
				return err
			}
			h := unitsMap(axes, all)
			if err := file.write(h.Write); err != nil {
				return err
			}
			var rows []unitsResult
			for _, r := range all {
				rows = append(rows, unitsResult{r.RateMbit, r.Paths, r.Connections, r.Unit, r.Ideal, r.OfBest()})
			}
			return o.putResults(cmd.OutOrStdout(), run, rows, func(w io.Writer) error { return printUnits(w, h, all) })
		},
	}
	o.resultFlags(cmd, "an array of objects")
	cmd.Flags().BoolVar(&quick, "quick", false, "eight cells instead of all")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of all that is random")
	cmd.Flags().StringVar(&plot, "plot", "", "file for the heat map as a picture (SVG)")
	return cmd
}

// unitsMap is the heat map of a sweep.
func unitsMap(a units.Axes, all []units.Result) report.HeatMap {
	h := report.HeatMap{Title: "Policy auto, in percent of the better of flowcells of 64 KB and packets", XTitle: "paths, connections", YTitle: "Mbit/s a path, unit"}
	for _, p := range a.Paths {
		h.Groups = append(h.Groups, report.HeatGroup{Name: strconv.Itoa(p), Columns: names(a.Connections, strconv.Itoa)})
	}
	for row := range slices.Chunk(all, len(a.Paths)*len(a.Connections)) {
		r := report.HeatRow{Name: fmt.Sprintf("%g, %s", row[0].RateMbit, strings.TrimPrefix(row[0].Unit, "flowcell of "))}
		for _, c := range row {
			r.Cells = append(r.Cells, c.OfBest())
		}
		h.Rows = append(h.Rows, r)
	}
	return h
}

// leastOfBest is what auto has to have, in percent of the better of the others.
const leastOfBest = 98

// printUnits prints the heat map, and what does not reach leastOfBest.
func printUnits(w io.Writer, h report.HeatMap, all []units.Result) error {
	if err := h.WriteMarkdown(w); err != nil {
		return err
	}
	below := 0
	for _, r := range all {
		if r.OfBest() >= leastOfBest {
			continue
		}
		below++
		fmt.Fprintf(w, "\n%g Mbit/s, %d paths, %d connections, %s:", r.RateMbit, r.Paths, r.Connections, r.Unit)
		for _, name := range units.Policies {
			fmt.Fprintf(w, " %s %.1f %%", name, r.Ideal[name])
		}
	}
	_, err := fmt.Fprintf(w, "\n%d of %d cells below %d %%\n", below, len(all), leastOfBest)
	return err
}
