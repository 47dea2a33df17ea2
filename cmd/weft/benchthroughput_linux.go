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
	"time"

	"github.com/spf13/cobra"

	"weft/bench/testbed"
	"weft/bench/throughput"
)

// benchThroughputOptions are the flags of weft bench throughput.
type benchThroughputOptions struct {
	cases     []string
	rounds    int
	duration  time.Duration
	warmup    time.Duration
	spineRate float64
	paths     int
	loss      float64 // percent
	skew      time.Duration
	sweep     bool
	plot      string

	connections   []int
	latency, anew bool

	name      string
	wireguard string
	tailscale string
	profiles  string
	append    string
	resultOutput
	ran runInfo
}

func newBenchThroughputCmd() *cobra.Command {
	var o benchThroughputOptions
	cmd := &cobra.Command{
		Use:   "throughput",
		Short: "TCP between two hosts by every way there is, and what it costs",
		Long:  benchThroughputHelp(),
		Example: "  weft bench throughput --cases kernel,wireguard-go --rounds 3\n" +
			"  weft bench throughput --cases tailscale,wireguard-go,tunnel/chacha20poly1305 --connections 1,64\n" +
			"  weft bench throughput --json --append",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.cases, "cases", nil, "what to measure (default all)")
	f.IntVar(&o.rounds, "rounds", 5, "all cases in turn, this many times; medians are shown")
	f.DurationVar(&o.duration, "duration", 3*time.Second, "measured time of each run")
	f.DurationVar(&o.warmup, "warmup", time.Second, "time before that")
	f.Float64Var(&o.spineRate, "spine-rate", 0, "rate of the links between leaves and spines in `Mbit/s`, which hosts are told, 0 for none; then % of ideal is shown, of which plain TCP over all spines is 100 (spines x rate x 1448/1514)")
	f.IntVar(&o.paths, "paths", throughput.DefaultPaths, "spines, each a path")
	f.Float64Var(&o.loss, "loss", 0, "`percent` of the packets that are lost on the spines' way to the receiver; of whole super-segments where no link cuts them")
	f.DurationVar(&o.skew, "skew", 0, "how much later packets arrive by one of the paths; a process delays them, so processor time means little")
	f.BoolVar(&o.sweep, "sweep", false, "measure "+strings.Join(throughput.SweepCases, ", ")+" over rates, losses, skews, paths and connections, and print a heat map: the first in percent of the best of the others; --spine-rate, --paths, --loss, --skew, --connections narrow it. Rounds: 1, warmup and duration: 0.5 s each")
	f.StringVar(&o.plot, "plot", "", "`file` for the sweep's heat map as a picture (SVG)")
	f.IntSliceVar(&o.connections, "connections", []int{1}, "how many connections carry the bytes at a time; a list such as 1,64 measures every case with each")
	f.BoolVar(&o.latency, "latency", false, "measure requests and responses of 64 B and 16 KB, too, idle and beside the bytes")
	f.BoolVar(&o.anew, "anew", false, "measure how many connections a second are opened, each for one request, too")
	f.StringVar(&o.name, "name", "tput", "name of the lab of network namespaces")
	f.StringVar(&o.wireguard, "wireguard", "bench/wireguard", "`directory` of the source of the wireguard-go forwarder")
	f.StringVar(&o.tailscale, "tailscale", "bench/tailscale", "`directory` of the source of the program that runs tailscaled; needs what (cd bench/tailscale && go mod download) fetches, or the case is left out")
	f.StringVar(&o.profiles, "profiles", "", "`directory` for profiles of the processor time, one for each process and run")
	f.StringVar(&o.append, "append", "", "`file` to add the results to, as a section dated today (without a name "+resultsFile+")")
	f.Lookup("append").NoOptDefVal = resultsFile
	o.resultFlags(cmd, "an array of objects")
	cmd.AddCommand(newThroughputWorkerCmd())
	return cmd
}

// resultsFile is where results are kept in the source tree.
const resultsFile = "bench/RESULTS.md"

// workerCommand is the hidden sub-command that is started in the namespaces.
const workerCommand = "worker"

func newThroughputWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Short:  "The process of one end, started by weft bench throughput",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return throughput.Worker(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func benchThroughputHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Throughput moves bytes by TCP from a host to another, through leaf and
spine switches that are network namespaces with the kernel's forwarding, over
links without a rate (MTU 1500). It does so by each way in turn, several times,
and checks what arrives. It needs root. With --spine-rate the links between leaf
and spine switches have a rate, a queue of 100 packets, and cut super-segments.

CPU-s/GB is the processor time of the whole machine while 10⁹ bytes arrive: of
the programs, of both kernels' TCP, of the switches; not of other programs that
run meanwhile. Gbit/s per core is the same the other way round.

With --latency one connection more makes one request after the other, each answered
with as many bytes; with --anew 16 at a time are opened, used for one request of 64 B
and closed. Both take as long as --duration, 10 s at most.

wireguard-go, wireguard-bare and tailscale are compiled from modules of their own
(--wireguard, --tailscale), and are left out where the Go module cache lacks what
these need: (cd bench/tailscale && go mod download). tailscaled takes the compiler
minutes, the first time. It runs as its service does, by its defaults: MTU 1280,
its firewall rules and so connection tracking, and no DNS settings. The two hosts
are a tailnet of their own, whose control server is tailscale's for tests, at the
receiver. A run fails unless packets go directly, by no relay.

Cases:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, c := range throughput.Cases() {
		fmt.Fprintf(tw, "  %s\t%s\n", c.Name, c.About)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}

// Times that make sense: /proc/stat counts in hundredths of a second.
const (
	minThroughputTime = 100 * time.Millisecond
	maxThroughputTime = time.Hour
	// maxConnections fit in a process's files.
	maxConnections = 1000
	// A lab of more spines is more than two processors carry.
	maxSpines        = 16
	minLoss, maxLoss = 0.001, 50.0 // percent
	maxSkew          = 100 * time.Millisecond
)

func (o *benchThroughputOptions) check() error {
	switch {
	case o.rounds < 1 || o.rounds > maxRounds:
		return usagef("--rounds=%d: must be 1 to %d", o.rounds, maxRounds)
	case o.duration < minThroughputTime || o.duration > maxThroughputTime:
		return usagef("--duration=%v: must be %v to %v", o.duration, minThroughputTime, maxThroughputTime)
	case o.spineRate != 0 && !(o.spineRate >= minRate && o.spineRate <= maxRate):
		return usagef("--spine-rate=%g: must be from %g to %g Mbit/s, or 0 for none", o.spineRate, minRate, maxRate)
	case len(o.connections) == 0 || slices.ContainsFunc(o.connections, func(n int) bool { return n < 1 || n > maxConnections }):
		return usagef("--connections=%v: each number must be 1 to %d", o.connections, maxConnections)
	case o.paths < 2 || o.paths > maxSpines:
		return usagef("--paths=%d: must be 2 to %d", o.paths, maxSpines)
	case !(o.loss == 0 || o.loss >= minLoss && o.loss <= maxLoss):
		return usagef("--loss=%g: must be from %g to %g percent, or 0 for none", o.loss, minLoss, maxLoss)
	case o.skew < 0 || o.skew > maxSkew:
		return usagef("--skew=%v: must be 0s to %v", o.skew, maxSkew)
	case o.plot != "" && !o.sweep:
		return usagef("--plot is for --sweep; add that, or leave --plot out")
	case o.sweep && (o.append != "" || o.latency || o.anew):
		return usagef("--sweep goes without --append, --latency and --anew; leave them out")
	case o.warmup < 0 || o.warmup > maxThroughputTime:
		return usagef("--warmup=%v: must be 0s to %v", o.warmup, maxThroughputTime)
	}
	return nil
}

func (o *benchThroughputOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.sweep {
		return o.runSweep(cmd)
	}
	cases, err := throughput.Select(o.cases)
	if err != nil {
		return usagef("--cases: %w", err)
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return fmt.Errorf("bench throughput: %w", err)
	}
	section, err := openSection(o.append)
	if err != nil {
		return usagef("--append: %w", err)
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return usagef("--profiles: %w", err)
		}
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	o.ran = newRunInfo(0, 0) // nothing is drawn
	results, failed := o.measure(cmd.Context(), cases, cmd.ErrOrStderr())
	if len(results) == 0 {
		return failed
	}
	printed := o.print(cmd.OutOrStdout(), results)
	// Results that are not whole are shown, but not kept.
	if failed == nil {
		failed = section.add(func(w io.Writer) error {
			return errors.Join(
				writeSection(w, "TCP by every way", "weft "+strings.Join(os.Args[1:], " "), o.about(), throughputRows(results)),
				writeTable(w, requestRows(results)))
		})
	}
	return errors.Join(failed, printed)
}

func (o *benchThroughputOptions) measure(ctx context.Context, cases []throughput.Case, notes io.Writer) ([]throughput.Result, error) {
	p := newProgress(ctx, "measuring")
	notes = p.above(notes)
	defer p.end()
	options, err := o.options(cases, p, notes)
	if err != nil {
		return nil, err
	}
	return throughput.Run(ctx, options)
}

// options are those of package throughput.
func (o *benchThroughputOptions) options(cases []throughput.Case, p *progress, notes io.Writer) (throughput.Options, error) {
	self, err := os.Executable()
	return throughput.Options{
		Cases: cases, Rounds: o.rounds, Warmup: o.warmup, Duration: o.duration,
		Connections: o.connections, Latency: o.latency, Anew: o.anew,
		SpineRate: o.spineRate, Paths: o.paths, Loss: o.loss / 100, Skew: o.skew,
		Lab: o.name, Wireguard: o.wireguard, Tailscale: o.tailscale, Profiles: o.profiles,
		Worker:   []string{self, "bench", "throughput", workerCommand},
		Progress: p.parts,
		Note:     func(s string) { fmt.Fprintln(notes, "note:", s) },
	}, err
}

func (o *benchThroughputOptions) print(w io.Writer, results []throughput.Result) error {
	return o.putResults(w, o.ran, results, func(w io.Writer) error { return o.table(w, results) })
}
