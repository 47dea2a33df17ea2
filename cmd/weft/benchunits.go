package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weft/bench/units"
)

// unitsResult is a row of weft bench units.
type unitsResult struct {
	RateMbit    float64            `json:"rate_mbit"`
	Paths       int                `json:"paths"`
	Connections int                `json:"connections"`
	Unit        string             `json:"unit"`          // that auto takes
	Ideal       map[string]float64 `json:"ideal_percent"` // goodput by policy
	Below       float64            `json:"below_percent"` // auto, than the best of the others
}

func newBenchUnitsCmd() *cobra.Command {
	var json, quick bool
	var seed uint64
	cmd := &cobra.Command{
		Use:   "units",
		Short: "What takes a path of its own: policy auto against flowcells of 64 KB and packets, in simulated time",
		Long: `Units sends from one host to another by several paths, over rates of links, numbers of
paths and connections, in simulated time: under policy auto, whose unit fits the links, and
under its two ends. Figures are the goodput in percent of what the links carry, medians of three
runs. The result depends on --seed alone. Processors are not simulated; weft bench throughput
measures what a unit costs.`,
		Example: "  weft bench units --quick",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []unitsResult
			sweep := units.Sweep(quick)
			p := newProgress("simulating")
			for i, s := range sweep {
				p.set(i, len(sweep))
				r, err := units.Run(cmd.Context(), s, seed)
				if err != nil {
					p.end()
					return err
				}
				all = append(all, unitsResult{s.RateMbit, s.Paths, s.Connections, r.Unit, r.Ideal, r.Below()})
			}
			p.end()
			if json {
				return printJSON(cmd.OutOrStdout(), all)
			}
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprint(tw, "Mbit/s\tpaths\tconnections\tauto takes")
			for _, name := range units.Policies {
				fmt.Fprint(tw, "\t", name, " %")
			}
			fmt.Fprintln(tw, "\tbelow the best")
			for _, r := range all {
				fmt.Fprintf(tw, "%g\t%d\t%d\t%s", r.RateMbit, r.Paths, r.Connections, r.Unit)
				for _, name := range units.Policies {
					fmt.Fprintf(tw, "\t%.1f", r.Ideal[name])
				}
				fmt.Fprintf(tw, "\t%.1f\n", r.Below)
			}
			return tw.Flush()
		},
	}
	cmd.Flags().BoolVar(&json, "json", false, "print an array of objects instead of a table")
	cmd.Flags().BoolVar(&quick, "quick", false, "eight cells instead of all")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of all that is random")
	return cmd
}
