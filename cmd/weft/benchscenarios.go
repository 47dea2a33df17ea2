package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/report"
	"weft/bench/scenario"
	"weft/internal/table"
)

// scenarioResult is a row of weft bench scenarios.
type scenarioResult struct {
	Scenario    string  `json:"scenario"`
	Goodput     float64 `json:"goodput_gbps"`
	Trace       string  `json:"trace"` // hash of all packets
	Retransmits uint64  `json:"retransmits"`
	Recoveries  uint64  `json:"recoveries"`
	Timeouts    uint64  `json:"timeouts"`
	MaxHeld     int     `json:"held_packets_max"`
	MiceMedian  float64 `json:"mice_p50_us,omitempty"`
	Mice99      float64 `json:"mice_p99_us,omitempty"`
}

func newBenchScenariosCmd() *cobra.Command {
	var o resultOutput
	cmd := &cobra.Command{
		Use:   "scenarios [name...]",
		Short: "TCP over paths that differ, lose and die, in virtual time",
		Long: `Scenarios sends 50 MB over four paths of 10 Gbit/s with something wrong about
them: the real stack on a model of the fabric, in virtual time. The trace is a
hash of all packets with their times; it is the same on every machine.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			list, err := scenario.Select(names)
			if err != nil {
				return usage(err)
			}
			if err := o.openResults(); err != nil {
				return err
			}
			defer o.discardResults()
			run := newRunInfo(1, 1)
			run.tell()
			results, err := runScenarios(cmd.Context(), list)
			if err != nil {
				return err
			}
			return o.putResults(cmd.OutOrStdout(), run, results, func(w io.Writer) error { return scenariosTable(w, results) })
		},
	}
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

func scenariosTable(w io.Writer, results []scenarioResult) error {
	tw := table.NewWriter(w, -1)
	fmt.Fprintln(tw, "scenario\tGbit/s\tretransmits\trecoveries\ttimeouts\theld\tmice p50/p99 µs\ttrace")
	for _, r := range results {
		mice := ""
		if r.Mice99 > 0 {
			mice = fmt.Sprintf("%.0f / %.0f", r.MiceMedian, r.Mice99)
		}
		fmt.Fprintf(tw, "%s\t%.2f\t%d\t%d\t%d\t%d\t%s\t%s\n", r.Scenario, r.Goodput, r.Retransmits, r.Recoveries, r.Timeouts, r.MaxHeld, mice, r.Trace)
	}
	return tw.Flush()
}

func runScenarios(ctx context.Context, list []scenario.Scenario) ([]scenarioResult, error) {
	var results []scenarioResult
	p := newProgress(ctx, "")
	defer p.end()
	for i, s := range list {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p.of(s.Name, i, len(list))
		r, err := s.Run()
		if err != nil {
			return nil, err
		}
		us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
		results = append(results, scenarioResult{
			Scenario: s.Name, Goodput: r.Goodput / 1e9, Trace: fmt.Sprintf("%016x", r.Trace),
			Retransmits: r.Retransmits, Recoveries: r.Recoveries, Timeouts: r.Timeouts,
			MaxHeld: r.Resequencer.MaxHeldPackets, MiceMedian: us(r.MiceMedian), Mice99: us(r.Mice99),
		})
	}
	return results, nil
}

func newBenchSkewCmd() *cobra.Command {
	var o resultOutput
	var plot string
	var loss bool
	cmd := &cobra.Command{
		Use:   "skew",
		Short: "Goodput against the difference of the paths' delays, with and without resequencer",
		Long: `Skew sends 50 MB over four paths of 10 Gbit/s of which one is slower, or with
--loss all of which lose packets, for kinds of hosts, in virtual time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := newReportFile("plot", plot)
			if err != nil {
				return err
			}
			defer file.discard()
			if err := o.openResults(); err != nil {
				return err
			}
			defer o.discardResults()
			about := newRunInfo(1, 1)
			about.tell()
			p := newProgress(cmd.Context(), "sending")
			run, x := func() ([]scenario.SkewRow, error) {
				return scenario.SkewTable(cmd.Context(), scenario.Bulk, scenario.Skews, p.parts)
			}, names(scenario.Skews, time.Duration.String)
			if loss {
				run, x = func() ([]scenario.SkewRow, error) {
					return scenario.LossTable(cmd.Context(), scenario.Bulk, scenario.Losses, p.parts)
				}, names(scenario.Losses, func(l float64) string { return fmt.Sprintf("%g %%", 100*l) })
			}
			rows, err := run()
			p.end()
			if err != nil {
				return err
			}
			if err := file.write(skewPlot(x, rows, loss).Write); err != nil {
				return err
			}
			return o.putResults(cmd.OutOrStdout(), about, rows, func(w io.Writer) error { return printSkew(w, x, rows) })
		},
	}
	o.resultFlags(cmd, "an array of objects")
	cmd.Flags().BoolVar(&loss, "loss", false, "vary the loss instead of the skew")
	cmd.Flags().StringVar(&plot, "plot", "", "file for a picture (SVG)")
	return cmd
}

func names[T any](list []T, name func(T) string) (s []string) {
	for _, v := range list {
		s = append(s, name(v))
	}
	return s
}

func printSkew(w io.Writer, x []string, rows []scenario.SkewRow) error {
	tw := table.NewWriter(w, 1)
	fmt.Fprint(tw, "Gbit/s\t")
	for _, name := range x {
		fmt.Fprintf(tw, "%s\t", name)
	}
	fmt.Fprintln(tw)
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t", r.Name)
		for _, g := range r.Goodput {
			fmt.Fprintf(tw, "%.2f\t", g)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func skewPlot(x []string, rows []scenario.SkewRow, loss bool) report.Plot {
	p := report.Plot{Title: "One TCP connection over four paths, one of them slower", XTitle: "by so much", YTitle: "goodput, Gbit/s", X: x}
	if loss {
		p.Title, p.XTitle = "One TCP connection over four paths that lose packets", "so many"
	}
	for _, r := range rows {
		p.Lines = append(p.Lines, report.PlotLine{Name: r.Name, Y: r.Goodput, Dashed: r.Discipline == "off"})
	}
	return p
}
