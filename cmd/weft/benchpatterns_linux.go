package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/named"
	"weft/bench/papers/thesis"
	"weft/bench/report"
	"weft/bench/schedulerlab"
	"weft/bench/testbed"
	"weft/internal/elephant"
	"weft/internal/table"
	"weft/topology"
)

// benchPatternsOptions are the flags of weft bench patterns.
type benchPatternsOptions struct {
	rows, patterns   []string
	rate             float64
	duration, warmup time.Duration
	mappings         int
	probes           int
	period           time.Duration
	seed             uint64
	name             string
	quick            bool
	resultOutput
	ran            runInfo
	progress       *progress
	report, append string

	self, env []string // weft itself, as a program
	shape     *topology.Topology
	chosen    []thesis.Pattern
}

// patternsFabric is the thesis', and patternsSwitch has as many hosts.
const (
	patternsFabric = "fat-tree:k=4"
	patternsSwitch = "leaf-spine:leaves=1,spines=1,hosts=16"
)

// The least that weft switch allows, and the most for which placements last long enough.
const minPatternsPeriod, maxPatternsPeriod = 100 * time.Millisecond, elephant.MaxValid / patternsLifetime

// patternsWarmup is how many periods it takes at least until what is placed is measured.
const patternsWarmup = 4

// patternsRow is a way to spread traffic.
type patternsRow struct {
	name, about string
	balance     string // how switches spread what goes up
	policy      string // of weft host in mode offload; "": none runs
	rule        string // of weft scheduler, with weft switch below the top unless there are weft hosts; "": none runs
	oneSwitch   bool   // all hosts hang on it
	paper       func(thesis.Pattern) float64
}

var patternsRows = []patternsRow{
	{name: "ecmp", about: "the kernels' ECMP by the five-tuple", balance: "ecmp", paper: func(p thesis.Pattern) float64 { return p.ECMP }},
	{name: "two-level", about: "switches with two-level tables, plain hosts (thesis §3.1.3)", balance: "two-level", paper: func(p thesis.Pattern) float64 { return p.TwoLevel }},
	{name: "classifier", about: "the same with flow classifiers at edge and aggregation switches (thesis §3.1.6)", balance: "classifier", paper: func(p thesis.Pattern) float64 { return p.Classifier }},
	{name: "exclusive", about: "weft scheduler, each link to one elephant (thesis §3.1.7), weft switch at edge and aggregation switches, plain hosts", balance: "ecmp", rule: "exclusive", paper: func(p thesis.Pattern) float64 { return p.Scheduler }},
	{name: "first-fit", about: "the same by Global First Fit (Hedera, thesis §4.2.3)", balance: "ecmp", rule: "first-fit", paper: func(p thesis.Pattern) float64 { return p.FirstFit }},
	{name: "annealing", about: "the same by simulated annealing (Hedera, thesis §4.2.4)", balance: "ecmp", rule: "annealing", paper: func(p thesis.Pattern) float64 { return p.Annealing }},
	{name: "host-annealing", about: "the same with weft host in mode offload with ecmp, plain switches", balance: "ecmp", policy: "ecmp", rule: "annealing"},
	{name: "weft-drb", about: "weft host in mode offload with drb, plain switches", balance: "ecmp", policy: "drb"},
	{name: "non-blocking", about: "all hosts at one switch", oneSwitch: true, paper: func(p thesis.Pattern) float64 { return p.NonBlocking }},
}

func patternsRowNames() (names []string) {
	for _, r := range patternsRows {
		names = append(names, r.name)
	}
	return names
}

func newBenchPatternsCmd() *cobra.Command {
	var o benchPatternsOptions
	cmd := &cobra.Command{
		Use:   "patterns",
		Short: "The thesis' Tables 3.1 and 4.3 by kernels: ECMP, tables, classifier, Hedera's schedulers, weft host",
		Long:  benchPatternsHelp(),
		Example: "  weft bench patterns --quick\n" +
			"  weft bench patterns --rows ecmp,first-fit,annealing,non-blocking --warmup 4s\n" +
			"  weft bench patterns --rows ecmp,two-level --patterns 'stride(4),same-ID outgoing' --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick {
				o.shorten(cmd.Flags().Changed)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.self, o.env = []string{self}, os.Environ()
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.rows, "rows", nil, "what to compare (default all): "+strings.Join(patternsRowNames(), ", "))
	f.StringArrayVar(&o.patterns, "patterns", nil, "a pattern to measure; give it several times for several (default all)")
	f.Float64Var(&o.rate, "rate", 16, "rate of every link in `Mbit/s`")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "measured time of each run")
	f.DurationVar(&o.warmup, "warmup", 2*time.Second, "time before that")
	f.IntVar(&o.mappings, "mappings", 5, "runs of each pattern, each with a mapping of its own where it is random; the rows share them, and medians are shown")
	f.IntVar(&o.probes, "probes", 125, "most probes a second of each weft host, which share this machine")
	f.DurationVar(&o.period, "period", 500*time.Millisecond, fmt.Sprintf("of reports and of weft scheduler's rounds; --warmup should be %d times as long", patternsWarmup))
	f.Uint64Var(&o.seed, "seed", 1, "of the first mapping")
	f.StringVar(&o.name, "name", "patt", "name of the labs of network namespaces")
	f.BoolVar(&o.quick, "quick", false, "one mapping of each pattern, measured for 2s after 1s, with a period of 250ms, where the flags do not say other values")
	f.StringVar(&o.report, "report", "", "`file` for the results as HTML")
	f.StringVar(&o.append, "append", "", "`file` to add the results to, as a section dated today (without a name "+resultsFile+")")
	f.Lookup("append").NoOptDefVal = resultsFile
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

func benchPatternsHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Patterns builds a fat-tree of k=4 in network namespaces for each row in turn. Every host
sends one TCP stream to one host and receives one, by the patterns of Tables 3.1 and 4.3
of Al-Fares' thesis (§3.5.2, §4.4.1); "random, not bijective" has hotspots. It prints what
arrives in percent of the bisection bandwidth: of what arrives if every host sends at the
rate of its link. It needs root.

In Table 3.1 the thesis' hosts send at a constant rate by UDP, which a full port cuts down.
Here they use the kernel's TCP. The thesis' columns are shown beside: those of Table 4.3
for ECMP, Hedera and the non-blocking switch, of Table 3.1 for the others.

Rows with weft scheduler run it and Debian's etcd (package etcd-server), which nodes reach
by a control network. Beside the results is how long the control loop takes: from the first
report of a flow until its placement is in force at its edge switch or host (compare Table
4.7). Flows of links that are not full may be reported in a later period.

Rows:
`)
	for _, r := range patternsRows {
		fmt.Fprintf(&s, "  %-14s %s\n", r.name, r.about)
	}
	fmt.Fprint(&s, "\nPatterns:\n")
	for _, p := range thesis.Patterns() {
		fmt.Fprintf(&s, "  %s\n", p.Name)
	}
	return strings.TrimSpace(s.String())
}

// shorten makes a quick run, as far as the flags do not say other values.
func (o *benchPatternsOptions) shorten(changed func(flag string) bool) {
	if !changed("mappings") {
		o.mappings = 1
	}
	if !changed("duration") {
		o.duration = 2 * time.Second
	}
	if !changed("period") {
		o.period = 250 * time.Millisecond
	}
	if !changed("warmup") {
		o.warmup = max(time.Second, patternsWarmup*o.period)
	}
}

// check returns the rows, and checks the flags.
func (o *benchPatternsOptions) check() (rows []patternsRow, err error) {
	if o.rows == nil {
		o.rows = patternsRowNames()
	}
	if rows, err = named.Select("row", patternsRows, func(r patternsRow) string { return r.name }, o.rows); err != nil {
		return nil, usagef("--rows: %w", err)
	}
	all := thesis.Patterns()
	if o.chosen = all; o.patterns != nil {
		o.chosen = nil
	}
	for _, name := range o.patterns {
		i := slices.IndexFunc(all, func(p thesis.Pattern) bool { return p.Name == name })
		if i < 0 {
			return nil, usagef("--patterns: %q: unknown; weft bench patterns --help lists them", name)
		}
		o.chosen = append(o.chosen, all[i])
	}
	switch {
	case !(o.rate >= minRate && o.rate <= maxRate):
		return nil, usagef("--rate=%g: must be from %g to %g Mbit/s", o.rate, minRate, maxRate)
	case o.duration < minThroughputTime || o.duration > maxThroughputTime:
		return nil, usagef("--duration=%v: must be %v to %v", o.duration, minThroughputTime, maxThroughputTime)
	case o.warmup < 0 || o.warmup > maxThroughputTime:
		return nil, usagef("--warmup=%v: must be 0s to %v", o.warmup, maxThroughputTime)
	case o.mappings < 1 || o.mappings > maxRounds:
		return nil, usagef("--mappings=%d: must be 1 to %d", o.mappings, maxRounds)
	case o.period < minPatternsPeriod || o.period > maxPatternsPeriod:
		return nil, usagef("--period=%v: must be %v to %v", o.period, minPatternsPeriod, maxPatternsPeriod)
	case o.probes < 1:
		return nil, usagef("--probes=%d: must be 1 or more", o.probes)
	}
	o.shape, err = topology.Parse(patternsFabric)
	return rows, err
}

func (o *benchPatternsOptions) run(ctx context.Context, w, notes io.Writer) (err error) {
	rows, err := o.check()
	if err != nil {
		return err
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return fmt.Errorf("bench patterns: %w", err)
	}
	if slices.ContainsFunc(rows, func(r patternsRow) bool { return r.rule != "" }) {
		if err := schedulerlab.Check(); err != nil {
			return absentf("bench patterns: %w; or leave the rows with weft scheduler out by --rows", err)
		}
	}
	section, err := openSection(o.append)
	if err != nil {
		return usagef("--append: %w", err)
	}
	file, err := newReportFile("report", o.report)
	if err != nil {
		return err
	}
	defer file.discard()
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	o.ran = newRunInfo(o.seed, o.mappings)
	o.progress = newProgress(ctx, "")
	defer o.progress.end()
	o.progress.plan(o.weights(rows)...)
	notes = o.progress.above(notes)
	var results []patternsResult
	for _, row := range rows {
		list, err := o.measureRow(ctx, row, notes)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		results = append(results, list...)
	}
	o.progress.end()
	all, loops := o.table(rows, results), loopsTable(rows, results)
	err = o.putResults(w, o.ran, results, func(w io.Writer) error {
		fmt.Fprintf(w, "%v\n%s\n\n", o.ran, o.about())
		err := table.Aligned(w, all)
		if len(loops) > 1 {
			fmt.Fprintf(w, "\n%s\n\n", o.aboutLoops())
			err = errors.Join(err, table.Aligned(w, loops))
		}
		return err
	})
	return errors.Join(err,
		section.add(func(w io.Writer) error {
			err := writeSection(w, "thesis Tables 3.1 and 4.3 by kernels", commandLine(), o.about(), all)
			if err == nil && len(loops) > 1 {
				err = writeSection(w, "thesis Table 4.7: the control loop", commandLine(), o.aboutLoops(), loops)
			}
			return err
		}),
		file.write(report.Charts{Title: "Tables 3.1 and 4.3 by kernels", Command: commandLine(),
			Facts:  append([]report.Fact{{Name: "Topology", Value: patternsFabric}, {Name: "Link rate", Value: fmt.Sprintf("%g Mbit/s", o.rate)}}, o.ran.facts()...),
			Tables: []report.Table{{Title: "What arrives, % of ideal", About: o.about(), Head: all[0], Rows: all[1:]}}}.Write))
}
