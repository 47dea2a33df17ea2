package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/failover"
	"weft/bench/report"
	"weft/bench/simfile"
	"weft/bench/testbed"
	"weft/encap"
	"weft/internal/live/ui"
	"weft/policy"
	"weft/resequencer"
)

// demoOptions are the flags of weft demo.
type demoOptions struct {
	topology     string
	traffic      string           // file
	matrix       *simfile.Streams // that of traffic; nil: a permutation
	rate         float64
	policies     []string
	duration     time.Duration
	warmup       time.Duration
	permutations int
	seed         uint64
	hold         time.Duration
	flowcell     int
	resequencer  string
	fabric       string
	encap        string
	meter        bool
	name         string
	resultOutput
	report       string
	skipFailover bool
	live         bool
	liveListen   string
}

func newDemoCmd() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Build a fabric, send a permutation under every policy, compare",
		Long: `Demo builds a fat-tree, lets every host send one TCP stream to a host in
another pod and small requests beside it, under one policy after the other, and
prints what came of it. As root the fabric is made of network namespaces, the
kernel's routing tables and rate-limited links, and in the end spines die in it;
otherwise, of models of links and switches in memory, in virtual time: the same
hosts, TCP included, and the same result on every machine for one --seed. It also
writes a report with pictures.

--topology may be a graph (weft topology), with a user's own addresses. Its
switches then are network namespaces that run FRR, and rows of the kernel's TCP
are by weft host. Links without a rate have --rate.`,
		Example: "  weft demo\n  weft demo --topology leaf-spine:leaves=3,spines=4,hosts=4 --policies kernel-ecmp,host-auto\n  weft demo --topology graph.yaml --live",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), o, cmd) },
	}
	f := cmd.Flags()
	topologyFlag(cmd, &o.topology)
	f.Lookup("topology").Usage += ", which may also be a graph (see weft topology)"
	f.StringVar(&o.traffic, "traffic", "", "`file` (YAML) that says who sends to whom, by the words that weft sim run has for that: see there (default each host to one in another pod)")
	f.Float64Var(&o.rate, "rate", 8, "rate of every link in `Mbit/s`; two cores carry the default, see idle")
	f.StringSliceVar(&o.policies, "policies", demoPolicies, "what to compare; \"all\" for "+strings.Join(rowNames(), ", "))
	f.DurationVar(&o.duration, "duration", 6*time.Second, "measured time of each run")
	f.DurationVar(&o.warmup, "warmup", 3*time.Second, "time before that")
	f.IntVar(&o.permutations, "permutations", 1, "runs of each policy, each with a permutation of its own; medians are shown")
	f.Uint64Var(&o.seed, "seed", 1, "of the first permutation")
	f.DurationVar(&o.hold, "hold", 0, "longest time that the resequencer waits for a packet (default 10ms, or 16 packets at the links' rate where that is longer)")
	f.IntVar(&o.flowcell, "flowcell", 4<<10, "`bytes` of a flowcell; Presto's 64 KB are a whole window of links this slow")
	f.StringVar(&o.resequencer, "resequencer", resequencer.Presto.String(), "discipline: presto, sequence, juggler, or off")
	f.StringVar(&o.fabric, "fabric", "auto", "netns, memory, or auto: netns as root")
	f.StringVar(&o.encap, "encap", encap.CarrierIPIP.String(), "how a packet is told its path: ipip or srv6")
	f.BoolVar(&o.meter, "meter", false, "switches measure their queues, for policies that are aware of congestion")
	f.BoolVar(&o.skipFailover, "skip-failover", false, "leave out the last part, half a minute in which spines die")
	f.BoolVar(&o.live, "live", false, "serve a page with a live picture of the fabric, as weft ui does, while the demo runs")
	f.StringVar(&o.liveListen, "live-listen", ui.DefaultListen, "`address` and port of that page, port 0 for any; or the path of a Unix socket")
	f.StringVar(&o.name, "name", "demo", "name of the lab of network namespaces")
	o.resultFlags(cmd, "an array of objects")
	f.StringVar(&o.report, "report", "report.html", "file for the report, \"\" for none")
	return longWork(cmd)
}

// demoPolicies are those that tell the story within two minutes.
var demoPolicies = []string{"kernel-ecmp", "kernel-mptcp", "host-auto", "ecmp", "rb", "rrb", "drb", "presto", "gateway-presto"}

// rowNames lists all that can be compared.
func rowNames() (names []string) {
	for _, r := range testbed.Rows() {
		names = append(names, r.Name)
	}
	return names
}

// Rates that make sense, in Mbit/s: below, a packet takes longer than a run.
const minRate, maxRate = 0.1, 30000.0

func (o *demoOptions) check() error {
	switch {
	case o.fabric != "auto" && o.fabric != "netns" && o.fabric != "memory":
		return usagef("--fabric=%s: must be auto, netns or memory", o.fabric)
	case o.permutations < 1:
		return usagef("--permutations=%d: must be 1 or more", o.permutations)
	case o.duration <= 0 || o.warmup < 0:
		return usagef("--duration=%v --warmup=%v: must be positive", o.duration, o.warmup)
	case !(o.rate >= minRate && o.rate <= maxRate):
		return usagef("--rate=%g: must be from %g to %g Mbit/s", o.rate, minRate, maxRate)
	}
	if err := (policy.Options{FlowcellBytes: o.flowcell}).Validate(); err != nil {
		return usagef("--flowcell: %w", err)
	}
	if _, err := resequencer.ParseDiscipline(o.resequencer); err != nil {
		return usagef("--resequencer: %w", err)
	}
	switch c, err := encap.ParseCarrier(o.encap); {
	case err != nil:
		return usagef("--encap: %w", err)
	case c == encap.CarrierMPLS:
		return usagef("--encap=mpls: hosts here send IP; take ipip or srv6")
	}
	if err := (resequencer.Config{Hold: o.hold}).Validate(); err != nil {
		return usagef("--hold: %w", err)
	}
	return nil
}

func runDemo(ctx context.Context, o demoOptions, cmd *cobra.Command) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	t, err := o.readFabric(ctx)
	if err != nil {
		return err
	}
	if slices.Equal(o.policies, []string{"all"}) {
		o.policies = rowNames()
	}
	rows, err := testbed.Select(o.policies)
	if err != nil {
		return usagef("--policies: %w", err)
	}
	if len(rows) == 0 {
		return usagef("--policies names none")
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
	d := demo{options: o, topology: t, run: newRunInfo(o.seed, o.permutations), ideals: idealsOf(t, o), progress: newProgress(ctx, "")}
	defer d.progress.end()
	d.stderr = d.progress.above(os.Stderr)
	if err := d.decide(); err != nil {
		return err
	}
	if d.page, err = d.options.startLive(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.page.end()) }()
	fmt.Fprintln(d.stderr, d.run)
	d.progress.plan(d.weights(rows)...)
	if d.bed, err = d.open(ctx); err != nil {
		return err
	}
	bed := d.bed
	defer func() { err = errors.Join(err, bed.Close()) }()
	if err := d.measureAll(ctx, rows); err != nil {
		return err
	}
	d.tellPace()
	// First things first: whatever becomes of the output, the lab is gone.
	if err := bed.Close(); err != nil {
		return err
	}
	if err := d.failSpines(ctx); err != nil {
		return err
	}
	d.progress.end()
	if err := o.putResults(cmd.OutOrStdout(), d.run, d.json(), d.table); err != nil {
		return err
	}
	return file.write(func(w io.Writer) error { return report.Write(w, d.html()) })
}

// reseq scales the resequencer's times to slow links. Paths differ by some
// packets' queueing, which takes 12 µs each at 1 Gbit/s and 1.2 ms at 10 Mbit/s.
func (o *demoOptions) reseq() resequencer.Config {
	packet := o.packetTime()
	c := resequencer.Config{
		Hold:    o.hold,
		MinHold: max(resequencer.DefaultMinHold, 4*packet),
	}
	c.Discipline, _ = resequencer.ParseDiscipline(o.resequencer) // checked
	if c.Hold == 0 {
		c.Hold = max(resequencer.DefaultHold, 16*packet)
	}
	return c
}

// packetTime is how long a full packet takes on a link.
func (o *demoOptions) packetTime() time.Duration {
	return time.Duration(fullFrame * 8 / o.rate * float64(time.Microsecond))
}

// decide decides what the fabric is made of.
func (d *demo) decide() error {
	o := &d.options
	if o.fabric == "memory" {
		return nil
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		if o.fabric == "netns" {
			return fmt.Errorf("--fabric=netns: %w; --fabric=memory needs nothing of this", err)
		}
		o.fabric = "memory"
		d.note(fmt.Sprintf("The fabric is in memory, in virtual time and without the kernel's TCP, instead of network namespaces: %v.", err))
		return nil
	}
	o.fabric = "netns"
	return nil
}

// open makes the fabric.
func (d *demo) open(ctx context.Context) (demoBed, error) {
	c := d.testbed()
	if d.options.fabric == "memory" {
		return &virtualBed{config: c}, nil
	}
	d.progress.begin("building " + d.options.topology)
	if c.Graph != nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		lab, err := testbed.InGraph(ctx, d.options.name, c, []string{self}, os.Environ(), d.progress.set)
		return realBed{lab}, err
	}
	lab, err := testbed.InNamespaces(ctx, d.options.name, c, d.progress.set)
	return realBed{lab}, err
}

// demo collects the results.
type demo struct {
	options  demoOptions
	topology demoFabric
	bed      demoBed
	notes    []string
	ideals   []float64 // of all hosts together in each permutation, Mbit/s
	outcomes []outcome
	failover []failover.Result
	run      runInfo
	progress *progress
	stderr   io.Writer
	page     *demoLive // nil: none
}

func (d *demo) note(s string) {
	d.notes = append(d.notes, s)
	fmt.Fprintln(d.stderr, s)
}

// machine describes where the figures come from.
func machine() string {
	s := fmt.Sprintf("%d processors, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		s += ", kernel " + strings.TrimSpace(string(b))
	}
	return s + ", " + runtime.Version()
}
