package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/reorder"
	"weft/internal/table"
)

func newBenchCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure parts of weft beside what one might take instead",
	}
	for _, c := range []*cobra.Command{newBenchResequencerCmd(), newBenchScenariosCmd(), newBenchSkewCmd(), newBenchThroughputCmd(), newBenchFailoverCmd(), newBenchAsymmetryCmd(), newBenchPermutationCmd(), newBenchPatternsCmd(), newBenchUnitsCmd(), newBenchFCTCmd(), newBenchAppsCmd(), newBenchFaultsCmd(), newBenchMeshCmd()} {
		cmd.AddCommand(longWork(c))
	}
	cmd.AddCommand(newBenchFailoverAgentsCmd())
	return cmd
}

// benchResequencerOptions are the flags of weft bench resequencer.
type benchResequencerOptions struct {
	cases, impls []string
	flows        []int
	rounds       int
	duration     time.Duration
	resultOutput
}

func newBenchResequencerCmd() *cobra.Command {
	var o benchResequencerOptions
	cmd := &cobra.Command{
		Use:   "resequencer",
		Short: "Nanoseconds a packet of reorder buffers, side by side on the same input",
		Long:  benchResequencerHelp(),
		Example: "  weft bench resequencer --cases in-order,cells-4\n" +
			"  weft bench resequencer --cases receive-core --flows 1,1000000 --impls presto,sorted-list --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cmd.Flags().Changed("flows"))
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.cases, "cases", nil, "what to measure (default all)")
	f.StringSliceVar(&o.impls, "impls", nil, "whom to measure (default all)")
	f.IntSliceVar(&o.flows, "flows", nil, "how many flows bursts-uniform, bursts-zipf and receive-core have (default 10000,100000,1000000, and 1 in receive-core)")
	f.IntVar(&o.rounds, "rounds", 15, "measured rounds, of which the median is taken; one to warm up comes before")
	f.DurationVar(&o.duration, "duration", 100*time.Millisecond, "how much traffic a round plays, at 1.2µs a packet: 1500 bytes at 10 Gbit/s")
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

func benchResequencerHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Resequencer plays the same packets, made once from a fixed seed, to buffers that
put them back in order and to those that one might take instead, and prints what
each took. It fails if a packet is lost, duplicated or, where it must not be, out
of order.

Timed are only the calls of the implementation, 64 packets at a time; reading the
clock, below 1 ns a packet, is not subtracted. Time is that of the packets at
10 Gbit/s; what is due is delivered at the end of a batch. With a million flows
Config.Flows is raised to hold them, and all implementations together take 1.3 GB.

Cases:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, c := range reorder.Cases() {
		fmt.Fprintf(tw, "  %s\t%s\n", c.Name, c.About)
	}
	tw.Flush()
	fmt.Fprint(&s, "\nImplementations:\n")
	for _, i := range reorder.Impls() {
		fmt.Fprintf(tw, "  %s\t%s\n", i.Name, i.About)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}

const maxRounds = 1000

// options checks the flags.
func (o *benchResequencerOptions) options(flowsGiven bool) (r reorder.Options, err error) {
	if r.Cases, err = reorder.SelectCases(o.cases); err != nil {
		return r, usagef("--cases: %w", err)
	}
	if r.Impls, err = reorder.SelectImpls(o.impls); err != nil {
		return r, usagef("--impls: %w", err)
	}
	if flowsGiven {
		r.Flows = slices.Compact(slices.Sorted(slices.Values(o.flows)))
		if len(r.Flows) == 0 || r.Flows[0] < 1 || slices.Max(r.Flows) > reorder.MaxFlows {
			return r, usagef("--flows=%s: must be numbers from 1 to %d", strings.Trim(fmt.Sprint(o.flows), "[]"), reorder.MaxFlows)
		}
	}
	r.Rounds = o.rounds
	r.Packets = int(o.duration / reorder.Interval)
	switch {
	case o.rounds < 1 || o.rounds > maxRounds:
		return r, usagef("--rounds=%d: must be 1 to %d", o.rounds, maxRounds)
	case r.Packets < 1:
		return r, usagef("--duration=%v: must be %v or more, the time of a packet", o.duration, reorder.Interval)
	case r.Packets > reorder.MaxPackets/o.rounds:
		return r, usagef("--duration=%v --rounds=%d: must be no more than %v together",
			o.duration, o.rounds, (reorder.MaxPackets * reorder.Interval).Truncate(time.Second))
	}
	return r, nil
}

func (o *benchResequencerOptions) run(ctx context.Context, w, notes io.Writer, flowsGiven bool) error {
	options, err := o.options(flowsGiven)
	if err != nil {
		return err
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(0, 0) // the input is of a fixed seed
	p := newProgress(ctx, "measuring")
	options.Progress = p.parts
	results, err := reorder.Run(ctx, options)
	p.end()
	if err != nil {
		return err
	}
	about := w // the machine is no part of the array
	if o.json {
		about = notes
	}
	fmt.Fprintln(about, run)
	if slices.ContainsFunc(results, func(r reorder.Result) bool { return r.Flows >= manyFlows }) {
		fmt.Fprintln(about, pointerChase())
	}
	if n := disturbed(results); n > 0 {
		fmt.Fprintf(notes, "In %d of %d rows the median is over %g times the best round: other programs use the processors.\n", n, len(results), disturbance)
	}
	return o.putResults(w, run, results, func(w io.Writer) error { return resequencerTable(w, results) })
}

// manyFlows are too many for the caches nearest to the processor.
const manyFlows = 10_000

// pointerChase tells what a cache miss costs here.
func pointerChase() string {
	var list []string
	for _, l := range reorder.PointerChase(reorder.ChaseSizes) {
		list = append(list, fmt.Sprintf("%d MB %.1f ns", l.MB, l.Nanos))
	}
	return "pointer chase, the latency of memory by working set, which bounds random flows: " + strings.Join(list, ", ")
}

// disturbance is the ratio of the median round to the best one from which other programs
// must have disturbed the machine.
const disturbance = 1.5

func disturbed(results []reorder.Result) (n int) {
	for _, r := range results {
		if r.NsPerPacket > disturbance*r.NsPerPacketMin {
			n++
		}
	}
	return n
}

func resequencerTable(w io.Writer, results []reorder.Result) error {
	fmt.Fprint(w, "ns/packet: median of the rounds, best and worst; out of order: delivered behind a later packet of its flow\n\n")
	tw := table.NewWriter(w, 2)
	fmt.Fprintln(tw, "case\timpl\tflows\tns/packet\tmin\tmax\tallocs/packet\theld max KB\tout of order %\tsegments per delivery\tconfig\t")
	for i, r := range results {
		if i > 0 && (r.Case != results[i-1].Case || r.Flows != results[i-1].Flows) {
			fmt.Fprintln(tw, " ")
		}
		config := r.Config
		if config == "" {
			config = "default"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.4f\t%.1f\t%.2f\t%.2f\t%s\t\n",
			r.Case, r.Impl, r.Flows, r.NsPerPacket, r.NsPerPacketMin, r.NsPerPacketMax, r.AllocsPerPacket,
			float64(r.HeldBytesMax)/1e3, 100*r.OutOfOrder, r.DeliveredSegments, config)
	}
	return tw.Flush()
}

// cpuModel names the processor as far as the system tells.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor unknown"
	}
	for line := range strings.Lines(string(b)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "processor unknown"
}
