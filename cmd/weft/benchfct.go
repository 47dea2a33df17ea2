package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/fct"
	"weft/bench/testbed"
	"weft/encap"
	"weft/internal/config"
)

// benchFCTOptions are the flags of weft bench fct.
type benchFCTOptions struct {
	fct.Options
	demo  demoOptions // topology, rate, flowcell
	rows  []string
	loads []string
	name  string
	quick bool
	json  bool
}

func newBenchFCTCmd() *cobra.Command {
	var o benchFCTOptions
	cmd := &cobra.Command{
		Use:   "fct",
		Short: "Flow completion times of the papers' workloads, over real TCP in a lab",
		Long:  benchFCTHelp(),
		Example: "  weft bench fct --topology leaf-spine:leaves=4,spines=4,hosts=4 --rows kernel-ecmp,drb --loads 0.8\n" +
			"  weft bench fct --workload datamining_vl2 --traffic permutation --json\n" +
			"  weft bench fct --quick",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick {
				o.shorten(cmd.Flags().Changed)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	topologyFlag(cmd, &o.demo.topology)
	f.Float64Var(&o.demo.rate, "rate", 10, "rate of every link in `Mbit/s`; two cores carry the default, see idle")
	f.StringVar(&o.Workload, "workload", "websearch_dctcp", "whose flow sizes: a wrong name lists all")
	f.Float64Var(&o.Scale, "scale", 0.02, "flow sizes are the workload's times this, as links are slower than the papers'")
	f.StringVar(&o.Traffic, "traffic", "random", "whom hosts send to: random, a host of another rack for each flow, or permutation, one host as far away as can be")
	f.StringSliceVar(&o.loads, "loads", []string{"0.2", "0.5", "0.8"}, "the flows' payload, as a part of what hosts can send out of their racks")
	f.StringSliceVar(&o.rows, "rows", fct.DefaultRows, "what to compare; \"all\" for all rows; a switch's may have parameters, as switch-letflow:gap=60ms")
	f.IntVar(&o.Seeds, "seeds", 3, "rounds, each with flows of its own; medians are shown")
	f.Uint64Var(&o.Seed, "seed", 1, "of the first round")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "time in which flows begin, in each run")
	f.DurationVar(&o.Drain, "drain", 5*time.Second, "time after that in which the last flows may finish")
	f.IntVar(&o.demo.flowcell, "flowcell", 4<<10, "`bytes` of a flowcell; Presto's 64 KB are a whole window of links this slow")
	f.StringVar(&o.name, "name", "fct", "name of the lab of network namespaces")
	f.BoolVar(&o.quick, "quick", false, "one load of 0.5, one seed and 2s, where the flags do not say other values")
	f.BoolVar(&o.json, "json", false, "print an array of objects instead of a table")
	return cmd
}

func benchFCTHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Fct builds a lab and plays flows in it, in one row after the other: flows begin at
the times of a Poisson process, and their sizes follow a workload of the papers,
scaled to slow links. All rows play the same flows. It needs root.

A flow is a TCP connection of its own. It has finished when the sender has read that all
bytes arrived; its completion time is the sender's, from the call that connects on.
Flows without that answer at the deadline are unfinished, and count as if they
ended then. Slowdown is the completion time by that of a flow alone: two round trips,
measured in the idle lab, and its packets at the rate of the hosts' links. Mice are
smaller than 100 KB, elephants larger than 10 MB, before sizes are scaled.

In a round each row runs under all loads; rounds have seeds of their own, and every
other round takes the rows backwards. Flows are of all rounds together, other figures
are medians over the rounds. A run begins and ends with an idle fabric.

Flowlets of 500 µs are for links of 10 Gbit/s. In slow labs every packet is one: give
a longer gap.

Rows, and who balances the load in them:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, r := range fct.Rows() {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", r.Name, r.Where, r.Hosts.Label)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}

// shorten makes a quick run, as far as the flags do not say other values.
func (o *benchFCTOptions) shorten(changed func(flag string) bool) {
	if !changed("loads") {
		o.loads = []string{"0.5"}
	}
	if !changed("seeds") {
		o.Seeds = 1
	}
	if !changed("duration") {
		o.Duration = 2 * time.Second
	}
}

// complete fills in what the flags say, and checks it as far as fct does not.
func (o *benchFCTOptions) complete() (err error) {
	o.demo.fabric, o.demo.resequencer, o.demo.encap = "netns", "presto", encap.CarrierIPIP.String()
	o.demo.permutations, o.demo.duration, o.demo.seed = 1, o.Duration, o.Seed
	if err := o.demo.check(); err != nil {
		return err
	}
	if o.Options.Topology, err = config.Topology(o.demo.topology); err != nil {
		return usagef("--topology: %w", err)
	}
	if len(o.rows) == 1 && o.rows[0] == "all" {
		o.Rows = fct.Rows()
	} else if o.Rows, err = fct.Select(o.rows); err != nil {
		return usagef("--rows: %w", err)
	}
	for _, r := range o.Rows {
		if n := o.lab(r.Balance); len(n) > maxLabName {
			return usagef("--name=%q: the lab of row %s would be %s, at most %d letters are possible; give a shorter name", o.name, r.Name, n, maxLabName)
		}
	}
	o.Loads = nil
	for _, s := range o.loads {
		load, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return usagef("--loads: %q is no number; write shares such as 0.5 with commas between", s)
		}
		o.Loads = append(o.Loads, load)
	}
	o.RateMbit, o.Machine = o.demo.rate, cpuModel()+": "+machine()
	return nil
}

// maxLabName is how many letters the name of a lab may have.
const maxLabName = 12

// lab is the name of the lab of a rule of the switches: --name and the number of the first row
// that has it. Labs of several rules are up at the same time.
func (o *benchFCTOptions) lab(balance string) string {
	return o.name + strconv.Itoa(slices.IndexFunc(o.Rows, func(r fct.Row) bool { return r.Balance == balance }))
}

// open builds the fabric of a rule of the switches.
func (o *benchFCTOptions) open(ctx context.Context, balance string) (testbed.Testbed, error) {
	p := newProgress("building " + o.demo.topology)
	defer p.end()
	c := o.demo.testbed(o.Options.Topology)
	c.Balance = balance
	return testbed.InNamespaces(ctx, o.lab(balance), c, p.set)
}

func (o *benchFCTOptions) run(ctx context.Context, w, notes io.Writer) error {
	if err := o.complete(); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return usage(err)
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return err
	}
	about := w // the setting is no part of the array
	if o.json {
		about = notes
	}
	fmt.Fprintf(about, "%s, %g Mbit/s; %s, sizes times %g; %s traffic, flows begin for %v; seeds %d to %d; a connection for each flow\n%s\n",
		o.Options.Topology, o.RateMbit, o.Workload, o.Scale, o.Traffic, o.Duration, o.Seed, o.Seed+uint64(o.Seeds)-1, o.Machine)
	p := newProgress("")
	o.Progress = func(row string, done, total int) {
		p.what = row
		p.set(done, total)
	}
	o.Note = func(s string) { fmt.Fprintln(notes, "note:", s) }
	o.Open = o.open
	results, err := fct.Run(ctx, o.Options)
	p.end()
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(w, results)
	}
	fmt.Fprintln(w)
	return fctTable(w, results)
}

func fctTable(w io.Writer, results []fct.Result) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "policy\twhere\tload\tsizes\tflows\tunfinished\tmean ms\tp99 ms\tslowdown p50\tp99\tidle %\t")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%s\t%g\t%s\t%d\t%d\t%.1f\t%.1f\t%.2f\t%.1f\t%.0f\t\n", r.Policy, r.Where, r.Load, r.SizeClass, r.Flows, r.Unfinished,
			r.MeanMs, r.P99Ms, r.SlowdownP50, r.SlowdownP99, r.IdlePercent)
	}
	return tw.Flush()
}
