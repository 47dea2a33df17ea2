package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/fct"
	"weft/bench/testbed"
	"weft/encap"
	"weft/internal/config"
	"weft/lab"
)

// benchFCTOptions are the flags of weft bench fct.
type benchFCTOptions struct {
	fct.Options
	demo  demoOptions // topology, rate, flowcell
	rows  []string
	loads []string
	name  string
	quick bool
	sim   bool // beside the lab

	report, write, read string // files

	told []string // notes
	resultOutput
	about runInfo
}

func newBenchFCTCmd() *cobra.Command {
	var o benchFCTOptions
	cmd := &cobra.Command{
		Use:   "fct",
		Short: "Flow completion times of the papers' workloads, over real TCP in a lab",
		Long:  benchFCTHelp(),
		Example: "  weft bench fct --topology leaf-spine:leaves=4,spines=4,hosts=4 --rows kernel-ecmp,drb --loads 0.8\n" +
			"  weft bench fct --workload datamining_vl2 --traffic permutation --json\n" +
			"  weft bench fct --traffic 'incast(8)' --rows kernel-ecmp,kernel-mptcp:subflows=8 --loads 0.3 --failure link-down\n" +
			"  weft bench fct --loads 0.5 --write-workload flows.json\n" +
			"  weft bench fct --workload-file flows.json --rows kernel-ecmp,switch-drill,drb --sim --report fct.html\n" +
			"  weft bench fct --quick",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick {
				o.shorten(cmd.Flags().Changed)
			}
			if err := o.takeFile(cmd.Flags().Changed); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	topologyFlag(cmd, &o.demo.topology)
	f.Float64Var(&o.demo.rate, "rate", 10, "rate of every link in `Mbit/s`; two cores carry the default, see idle")
	f.StringVar(&o.Workload, "workload", "websearch_dctcp", "whose flow sizes: a wrong name lists all")
	f.Float64Var(&o.Scale, "scale", 0.02, "flow sizes are the workload's times this, as links are slower than the papers'")
	f.StringVar(&o.Traffic, "traffic", "random", "whom hosts send to, and when: see above")
	f.Int64Var(&o.JobBytes, "job-bytes", 0, "`bytes` of a shuffle's transfer, an incast's file or hdfs's block, before --scale (default the paper's: 500, 10 and 128 MB)")
	f.StringVar(&o.Failure, "failure", "symmetric", fct.FailureHelp+"; without parameters the first link between switches, a quarter")
	f.StringSliceVar(&o.loads, "loads", []string{"0.2", "0.5", "0.8"}, "the flows' payload, as a part of what hosts can send out of their racks")
	f.StringSliceVar(&o.rows, "rows", fct.DefaultRows, "what to compare; \"all\" for all rows; a switch's may have parameters, as switch-letflow:gap=60ms, and kernel-mptcp, as kernel-mptcp:subflows=4")
	f.IntVar(&o.Seeds, "seeds", 3, "rounds, each with flows of its own; medians are shown")
	f.Uint64Var(&o.Seed, "seed", 1, "of the first round")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "time in which flows begin, in each run")
	f.DurationVar(&o.Drain, "drain", 5*time.Second, "time after that in which the last flows may finish")
	f.IntVar(&o.demo.flowcell, "flowcell", 4<<10, "`bytes` of a flowcell; Presto's 64 KB are a whole window of links this slow")
	f.StringVar(&o.name, "name", "fct", "name of the lab of network namespaces")
	f.BoolVar(&o.sim, "sim", false, "run the same flows in the packet-level simulator, and print it beside the lab")
	f.StringVar(&o.report, "report", "", "`file` for the results as HTML")
	f.StringVar(&o.write, "write-workload", "", "`file` for the flows of the first round; nothing is measured")
	f.StringVar(&o.read, "workload-file", "", "`file` of flows to play, each round the same; it says fabric, rate, load and duration, too")
	f.BoolVar(&o.quick, "quick", false, "one load of 0.5, one seed and 2s, where the flags do not say other values")
	o.resultFlags(cmd, "an array of objects")
	return cmd
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
		if n := o.lab(r.Fabric); len(n) > maxLabName {
			return usagef("--name=%q: the lab of row %s would be %s, at most %d letters are possible; give a shorter name", o.name, r.Name, n, maxLabName)
		}
	}
	if o.sim {
		if err := fct.CanSimulate(o.Rows); err != nil {
			return usagef("--sim: %w", err)
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
	c := o.demo.testbed(o.Options.Topology)
	o.Options.Policy, o.Options.Resequencer = c.Policy, c.Resequencer
	return nil
}

// fileFlags are what a workload file says.
var fileFlags = []string{"topology", "rate", "workload", "scale", "traffic", "job-bytes", "loads", "seed", "duration", "quick", "write-workload"}

// takeFile reads the workload file, if there is one.
func (o *benchFCTOptions) takeFile(changed func(flag string) bool) error {
	if o.read == "" {
		return nil
	}
	for _, flag := range fileFlags {
		if changed(flag) {
			return usagef("--%s: the workload file says that: leave it out", flag)
		}
	}
	f, err := readWorkload(o.read)
	if err != nil {
		return err
	}
	if err := o.Use(f); err != nil {
		return usagef("--workload-file: %w", err)
	}
	o.demo.topology, o.demo.rate = f.Topology, f.RateMbit
	o.loads = []string{strconv.FormatFloat(f.Load, 'g', -1, 64)}
	return nil
}

// readWorkload reads a workload file.
func readWorkload(path string) (*fct.File, error) {
	text, err := config.ReadInput(path, fct.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("--workload-file: %w", err)
	}
	f, err := fct.ParseFile(text)
	if err != nil {
		return nil, usagef("--workload-file=%s: %w", path, err)
	}
	return f, nil
}

// maxLabName is how many letters the name of a lab may have.
const maxLabName = 12

// lab is the name of a fabric's lab: --name and the number of the first row that has it, b if none
// has: slowdowns divide by what is measured there. Labs are up at the same time.
func (o *benchFCTOptions) lab(f fct.Fabric) string {
	row := slices.IndexFunc(o.Rows, func(r fct.Row) bool { return r.Fabric == f })
	if row < 0 {
		return o.name + "b"
	}
	return o.name + strconv.Itoa(row)
}

// open builds a fabric.
func (o *benchFCTOptions) open(ctx context.Context, f fct.Fabric, p *progress) (testbed.Testbed, error) {
	real, known, err := o.WithFailure()
	if err != nil {
		return nil, err
	}
	if f.Whole {
		real, known = o.Options.Topology, o.Options.Topology
	}
	c := o.demo.testbed(real)
	c.Known, c.Balance = known, f.Balance
	if f.MarkBytes > 0 {
		c.Meter = &lab.Meter{ECNBytes: f.MarkBytes}
	}
	return testbed.InNamespaces(ctx, o.lab(f), c, p.beside("building "+o.demo.topology))
}

func (o *benchFCTOptions) run(ctx context.Context, w, notes io.Writer) error {
	if err := o.complete(); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return usage(err)
	}
	if o.write != "" {
		return o.writeWorkload()
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return err
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
	o.about = newRunInfo(o.Seed, o.Seeds)
	about := w // the setting is no part of the array
	if o.json {
		about = notes
	}
	fmt.Fprintf(about, "%s, %g Mbit/s, %s; %s, sizes times %g; %s traffic, flows begin for %v; a connection for each flow\n%v\n",
		o.Options.Topology, o.RateMbit, o.Failure, o.WorkloadName(), o.Scale, o.Traffic, o.Duration, o.about)
	p := newProgress(ctx, "")
	notes = p.above(notes)
	o.Progress = p.of
	o.Note = func(s string) {
		o.told = append(o.told, s)
		fmt.Fprintln(notes, "note:", s)
	}
	o.Open = func(ctx context.Context, f fct.Fabric) (testbed.Testbed, error) { return o.open(ctx, f, p) }
	idle := fct.Idle{Delay: fct.DefaultDelay}
	o.OnIdle = func(i fct.Idle) { idle = i }
	results, err := fct.Run(ctx, o.Options)
	defer p.end()
	return o.finish(w, file, results, err, func() ([]fct.Result, error) { return fct.Simulate(ctx, o.Options, idle) })
}

// finish simulates, prints and writes the results that there are, and returns all that failed. err
// is Run's: a lab that cannot be taken down is an error beside complete results.
func (o *benchFCTOptions) finish(w io.Writer, file *reportFile, results []fct.Result, err error, simulate func() ([]fct.Result, error)) error {
	if results == nil {
		return err
	}
	if o.sim {
		simulated, simErr := simulate()
		results, err = append(results, simulated...), errors.Join(err, simErr)
	}
	return errors.Join(o.print(w, results), file.write(o.page(results).Write), fctFailed(results), err)
}

func (o *benchFCTOptions) print(w io.Writer, results []fct.Result) error {
	return o.putResults(w, o.about, results, func(w io.Writer) error { return o.table(w, results) })
}

func (o *benchFCTOptions) table(w io.Writer, results []fct.Result) error {
	fmt.Fprintln(w)
	if err := fctTable(w, 4, fctHead, fctRows(results)); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s%s%s\n", fctErrors(results), slowdownAbout(results), o.confidence())
	if !o.besides(results) {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n\n", besideAbout)
	return fctTable(w, 3, besideHead, besideRows(results))
}

func (o *benchFCTOptions) writeWorkload() error {
	var text bytes.Buffer
	if err := o.WriteFile(&text); err != nil {
		return usage(err)
	}
	if err := os.WriteFile(o.write, text.Bytes(), 0o644); err != nil {
		return cannotWrite("write-workload", o.write, err)
	}
	return nil
}
