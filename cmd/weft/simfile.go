package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/bench/report"
	"weft/bench/simfile"
)

// isSimFile reports whether an argument of weft sim run names a file, not an experiment.
func isSimFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}

// ownFlags are those of weft sim run that go with a file of one's own.
var ownFlags = []string{"jobs", "json", "report", "csv", "progress"}

// onlyFlags refuses flags that have no effect on a file.
func onlyFlags(cmd *cobra.Command, known []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(known, f.Name) {
			err = usagef("--%s: has no effect on a file: write seeds and times into it", f.Name)
		}
	})
	return err
}

// runFile simulates what a file describes.
func (o *simOptions) runFile(ctx context.Context, w io.Writer, names []string) error {
	if len(names) != 1 {
		return usagef("%s: a file is run alone: name it and nothing else", names[slices.IndexFunc(names, isSimFile)])
	}
	if o.Jobs < 1 {
		return usagef("--jobs=%d: must be 1 or more", o.Jobs)
	}
	f, err := simfile.Read(names[0])
	if err != nil {
		return err
	}
	page, err := newReportFile("report", o.output)
	if err != nil {
		return err
	}
	defer page.discard()
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(uint64(f.Seed), f.Seeds)
	run.tell()
	p := newProgress(ctx, names[0])
	results, err := f.Run(ctx, o.Jobs, p.parts)
	p.end()
	if err != nil {
		return err
	}
	if err := page.write(simFilePage(run, names[0], results).Write); err != nil {
		return err
	}
	return o.putResults(w, run, results, func(w io.Writer) error {
		fmt.Fprintln(w, simFileAbout(results))
		head, rows := simFileTable(results)
		return fctTable(w, 2, head, rows)
	})
}

// simFileAbout says what all rows have in common.
func simFileAbout(results []simfile.Result) string {
	r := results[0]
	s := fmt.Sprintf("%s, matrix %s, sizes %s, ", r.Topology, r.Matrix, r.Sizes)
	if r.Sizes == "" {
		s = fmt.Sprintf("%s, flows as listed, ", r.Topology)
	}
	if r.Seeds == 1 {
		return s + fmt.Sprintf("seed %d", r.Seed)
	}
	return s + fmt.Sprintf("seeds %d to %d, medians; Mbit/s: means and 95 %% intervals", r.Seed, r.Seed+uint64(r.Seeds)-1)
}

// simFileTable has columns of jobs only if there are some.
func simFileTable(results []simfile.Result) (head []string, rows [][]string) {
	jobs := slices.ContainsFunc(results, func(r simfile.Result) bool { return r.Jobs > 0 })
	head = []string{"policy", "load", "flows", "unfinished", "mean ms", "least to most", "p50", "p95", "p99", "p99.9", "most", "last at"}
	if jobs {
		head = append(head, "job mean ms", "job p99")
	}
	head = append(head, "Mbit/s a host", "sent again", "timeouts", "drops", "out of order %", "most queued KB")
	for _, r := range results {
		load := "-"
		if r.Load != nil {
			load = fmt.Sprintf("%g", *r.Load)
		}
		row := []string{r.Policy, load, fmt.Sprint(r.Flows), fmt.Sprint(r.Unfinished), fmt.Sprintf("%.3f", r.MeanMs), fmt.Sprintf("%.3f to %.3f", r.MeanLowMs, r.MeanHighMs)}
		times := []*float64{&r.P50Ms, r.P95Ms, r.P99Ms, r.P999Ms, &r.MaxMs, &r.LastMs}
		if jobs {
			times = append(times, r.JobMeanMs, r.JobP99Ms)
		}
		for _, ms := range times {
			row = append(row, milliCell(ms))
		}
		rows = append(rows, append(row, goodputCell(&r), fmt.Sprint(r.Retransmits), fmt.Sprint(r.Timeouts), fmt.Sprint(r.Drops),
			fmt.Sprintf("%.2f", r.OutOfOrderPercent), fmt.Sprintf("%.1f", r.MaxQueueBytes/1e3)))
	}
	return head, rows
}

// goodputCell is the mean of seeds with its interval, if there is one.
func goodputCell(r *simfile.Result) string {
	if r.Goodput95Mbit == nil {
		return fmt.Sprintf("%.1f", r.GoodputMbit)
	}
	return fmt.Sprintf("%.1f ± %.1f", r.GoodputMeanMbit, *r.Goodput95Mbit)
}

// milliCell is a time in ms, if there is one.
func milliCell(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *ms)
}

func simFilePage(run runInfo, name string, results []simfile.Result) report.Charts {
	head, rows := simFileTable(results)
	return report.Charts{
		Title: "Simulated: " + strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), Headline: simFileAbout(results),
		Facts:   run.facts(),
		Charts:  simfile.Charts(results),
		Tables:  []report.Table{{Title: "Figures", About: "Flows that do not end count as if they had ended with the run. A percentile is - unless each seed has so many flows that one is above it.", Head: head, Rows: rows}},
		Command: "weft sim run " + name,
	}
}
