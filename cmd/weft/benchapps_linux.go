package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weft/bench/apps"
	"weft/bench/named"
	"weft/bench/testbed"
	"weft/internal/config"
	"weft/internal/table"
)

// benchAppsOptions are the flags of weft bench apps.
type benchAppsOptions struct {
	apps.Options
	apps, rows []string
	topology   string
	quick      bool
	resultOutput
	about runInfo
}

func newBenchAppsCmd() *cobra.Command {
	var o benchAppsOptions
	cmd := &cobra.Command{
		Use:   "apps",
		Short: "How long real programs take: OpenMPI, Redis, PostgreSQL, nginx, iperf3, rsync",
		Long:  benchAppsHelp(),
		Example: "  weft bench apps\n" +
			"  weft bench apps --apps mpi-shift,mpi-alltoall --rows kernel-ecmp,switch-drill --json\n" +
			"  weft bench apps --quick --apps redis,nginx",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick {
				o.shorten(cmd.Flags().Changed)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Weft, o.Env = []string{self}, os.Environ()
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.topology, "topology", "leaf-spine:leaves=4,spines=4,hosts=4", "the fabric, as weft topology takes it")
	f.Float64Var(&o.RateMbit, "rate", 10, "rate of every link in `Mbit/s`; two cores carry the default, see idle")
	f.StringSliceVar(&o.apps, "apps", nil, "what to run (default all): "+strings.Join(apps.AppNames(), ", "))
	f.StringSliceVar(&o.rows, "rows", apps.DefaultRows, "what to compare; \"all\" for all rows: "+strings.Join(apps.RowNames(), ", "))
	f.IntVar(&o.Bytes, "bytes", 1<<20, "about what each client moves in an app")
	f.IntVar(&o.Rounds, "rounds", 3, "rounds, each with pairs of its own; medians are shown")
	f.Uint64Var(&o.Seed, "seed", 1, "of the first round's pairs")
	f.StringVar(&o.Lab, "name", "apps", "name of the lab of network namespaces; labs of rows of switches have a number behind it")
	f.BoolVar(&o.quick, "quick", false, "one round of 256 KB by each client, where the flags do not say other values")
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

func benchAppsHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Apps builds a lab and runs programs of Debian in it, as they are, in one row after the
other. Every host runs a server and a client, whose server is at a host of another rack.
Clients wait until all are there and begin together, so that their paths collide; each moves
about --bytes. The time includes the start of the program. Apps prints the time until the last
client is done, the highest 99th percentile of a client's requests, and their ratios to
kernel-ecmp's of the same round. A 99th percentile of less than 100 requests is null, or - in the
table; the default of --bytes is enough for all but MPI. It needs root.

In a round each row runs all apps; rounds have pairs of their own, which the rows share, and
every other round takes the rows backwards. Programs use the kernel's TCP with cubic. A
row is void if the processors were idle less than 10 % of its time or of kernel-ecmp's, in the
median of the rounds that have figures.
Ranks of MPI poll while they wait, at the lowest priority: what they take counts as idle, but
for the time of interrupts.

An app whose programs are not there has a line that names the packages to install. A round in
which a program fails has no figures: it is told and counted, and the other rounds have theirs.
If a row of an app has no figures at all, the exit status is 1. In rows of weft hosts send at
most 125 probes a second (the default is 2,000), as 16 of them share the processors. If weft is
killed, weft lab down --name apps ends the programs, and --name apps1, apps2 and so on those of
rows of switches; directories weft-apps-* stay where temporary files are.

Apps, with the packages that have them:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, a := range apps.Apps {
		fmt.Fprintf(tw, "  %s\t%s (%s)\n", a.Name, a.About, strings.Join(a.Packages(), ", "))
	}
	tw.Flush()
	fmt.Fprint(&s, "\nRows:\n")
	for _, r := range apps.Rows {
		fmt.Fprintf(tw, "  %s\t%s\n", r.Name, r.About)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}

// quickBytes is what a client moves in a quick run.
const quickBytes = 256 << 10

// shorten makes a quick run, as far as the flags do not say other values.
func (o *benchAppsOptions) shorten(changed func(flag string) bool) {
	if !changed("bytes") {
		o.Bytes = quickBytes
	}
	if !changed("rounds") {
		o.Rounds = 1
	}
}

// Bounds of --bytes: of less, a client has too few requests.
const minAppBytes, maxAppBytes = 64 << 10, 1 << 30

// check fills in what the flags say, and checks it.
func (o *benchAppsOptions) check() (err error) {
	if o.Apps, err = named.Keep("app", apps.Apps, func(a apps.App) string { return a.Name }, o.apps); err != nil {
		return usagef("--apps: %w", err)
	}
	if len(o.rows) == 1 && o.rows[0] == "all" {
		o.rows = apps.RowNames()
	}
	if o.Rows, err = named.Select("row", apps.Rows, func(r apps.Row) string { return r.Name }, o.rows); err != nil {
		return usagef("--rows: %w", err)
	}
	if o.Topology, err = config.Topology(o.topology); err != nil {
		return usagef("--topology: %w", err)
	}
	switch n := o.Topology.NumHosts(); {
	case len(o.Rows) == 0:
		return usagef("--rows names none; known: %s", strings.Join(apps.RowNames(), ", "))
	case !(o.RateMbit >= minRate && o.RateMbit <= maxRate):
		return usagef("--rate=%g: must be from %g to %g Mbit/s", o.RateMbit, minRate, maxRate)
	case n < 2 || len(slices.Collect(o.Topology.Racks())) < 2:
		return usagef("--topology: %s has one rack; clients need servers in another one", o.topology)
	case o.Bytes < max(minAppBytes, apps.MinBytes(n)) || o.Bytes > maxAppBytes:
		return usagef("--bytes=%d: must be from %d to %d", o.Bytes, max(minAppBytes, apps.MinBytes(n)), maxAppBytes)
	case o.Rounds < 1 || o.Rounds > maxRounds:
		return usagef("--rounds=%d: must be 1 to %d", o.Rounds, maxRounds)
	case len(o.Lab) >= maxLabName:
		return usagef("--name=%q: must have less than %d letters", o.Lab, maxLabName)
	}
	o.Known = ratedTopology(o.topology, o.RateMbit)
	return nil
}

// ratedTopology is a computed fabric with the rate of its links, of which hosts that adapt make use.
func ratedTopology(spec string, rate float64) string {
	if strings.Contains(spec, "rate=") {
		return spec
	}
	sep := ","
	if !strings.Contains(spec, ":") {
		sep = ":"
	}
	rated := fmt.Sprintf("%s%shost-rate=%g,fabric-rate=%g", spec, sep, rate, rate)
	if strings.HasPrefix(spec, "leaf-spine") { // has no third layer
		return rated
	}
	return fmt.Sprintf("%s,core-rate=%g", rated, rate)
}

func (o *benchAppsOptions) run(ctx context.Context, w, notes io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return fmt.Errorf("bench apps: %w", err)
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	o.about = newRunInfo(o.Seed, o.Rounds)
	p := newProgress(ctx, "")
	notes = p.above(notes)
	o.Progress = p.of
	o.Note = func(s string) { fmt.Fprintln(notes, "note:", s) }
	results, err := apps.Run(ctx, o.Options)
	p.end()
	return o.finish(w, results, err)
}

// finish prints the results that there are, and returns all that failed. err is Run's: a lab that
// cannot be taken down is an error beside complete results.
func (o *benchAppsOptions) finish(w io.Writer, results []apps.Result, err error) error {
	if err != nil {
		err = fmt.Errorf("bench apps: %w", err)
	}
	if results == nil {
		return err
	}
	return errors.Join(o.print(w, results), appsFailed(results), err)
}

func (o *benchAppsOptions) print(w io.Writer, results []apps.Result) error {
	return o.putResults(w, o.about, results, func(w io.Writer) error { return o.table(w, results) })
}

func (o *benchAppsOptions) table(w io.Writer, results []apps.Result) error {
	fmt.Fprintf(w, "%v\n%s, %g Mbit/s; %d clients at once, %d bytes each; medians of %d rounds; ratios to %s\n\n",
		o.about, o.topology, o.RateMbit, o.Topology.NumHosts(), o.Bytes, o.Rounds, apps.Baseline)
	err := table.Aligned(w, appsTable(results))
	fmt.Fprint(w, appsProblems(results))
	return err
}

// roundsCell is how many rounds have figures, of those that ran.
func roundsCell(r apps.Result) string {
	if r.Failed == 0 {
		return fmt.Sprint(r.Rounds)
	}
	return fmt.Sprintf("%d of %d", r.Rounds, r.Rounds+r.Failed)
}

// appsTable has a line for each result, its head first.
func appsTable(results []apps.Result) [][]string {
	figure := func(format string, x *float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf(format, *x)
	}
	table := [][]string{{"app", "row", "rounds", "seconds", "least", "most", "ratio", "median client", "p99 ms", "ratio", "retransmits", "idle %", ""}}
	for _, r := range results {
		idle := "-"
		if r.IdlePercent >= 0 {
			idle = fmt.Sprintf("%.0f", r.IdlePercent)
		}
		line := []string{r.App, r.Row, roundsCell(r), "-", "-", "-", "-", "-", "-", "-", "-", idle, ""}
		if r.Rounds > 0 {
			line = []string{r.App, r.Row, roundsCell(r), fmt.Sprintf("%.2f", r.Seconds), fmt.Sprintf("%.2f", slices.Min(r.All)), fmt.Sprintf("%.2f", slices.Max(r.All)), figure("%.2f", r.Ratio),
				fmt.Sprintf("%.2f", r.PairSeconds), figure("%.1f", r.P99Ms), figure("%.2f", r.P99Ratio), fmt.Sprint(r.Retransmits), idle, ""}
		}
		last := len(line) - 1
		if r.Void {
			line[last] = "void: busy machine"
		}
		if r.Problem != "" {
			line[last] = strings.TrimPrefix(line[last]+", see below", ", ")
		}
		table = append(table, line)
	}
	return table
}

// appsProblems has a line for each problem; rows that have the same are together.
func appsProblems(results []apps.Result) string {
	var s strings.Builder
	for i, r := range results {
		if r.Problem == "" || i > 0 && results[i-1].App == r.App && results[i-1].Problem == r.Problem {
			continue
		}
		what := r.App + ", " + r.Row
		if r.Missing {
			what = r.App
		}
		fmt.Fprintf(&s, "\n%s: %s", what, r.Problem)
	}
	if s.Len() > 0 {
		fmt.Fprintln(&s)
	}
	return s.String()
}

// appsFailed is an error if a row of an app has no figures.
func appsFailed(results []apps.Result) error {
	without, missing := 0, 0
	for _, r := range results {
		if r.Rounds == 0 {
			without++
		}
		if r.Missing {
			missing++
		}
	}
	switch {
	case missing == len(results):
		return absentf("bench apps: %s", results[0].Problem)
	case without > 0:
		return fmt.Errorf("bench apps: %d of %d results have no figures: each says why", without, len(results))
	}
	return nil
}
