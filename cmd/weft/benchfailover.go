package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/failover"
	"weft/bench/testbed"
	"weft/internal/config"
)

// benchFailoverOptions are the flags of weft bench failover.
type benchFailoverOptions struct {
	topology string
	agents   string
	plot     string
	trace    string
	resultOutput
	about    runInfo
	figure12 bool
	chaos    time.Duration
	failover.Options
}

func newBenchFailoverCmd() *cobra.Command {
	var o benchFailoverOptions
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "How long hosts go on sending into a hole, and what the fabric carries meanwhile",
		Long:  benchFailoverHelp,
		Example: "  weft bench failover --repetitions 30 --json\n" +
			"  weft bench failover --kinds silent --agents false --plot failover.html\n" +
			"  weft bench failover --figure12 --topology fat-tree:k=6 --plot figure12.html\n" +
			"  weft bench failover --chaos 10m --seed 7",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	topologyFlag(cmd, &o.topology)
	f.IntVar(&o.Repetitions, "repetitions", 30, "failures of each kind, with and without agents")
	f.Float64Var(&o.RateMbit, "rate", 0, "rate of every link in `Mbit/s`; 0: what this machine can carry")
	f.Float64Var(&o.Load, "load", 0.5, "what the streams ask for, as a part of the ideal; 0: as much as TCP gets, as --figure12 does by default")
	f.StringSliceVar(&o.Kinds, "kinds", failover.Kinds, "seen: a port goes down; silent: links stay up and swallow everything")
	f.StringVar(&o.agents, "agents", "both", "true, false or both: agents at the switches and listeners at the hosts")
	f.BoolVar(&o.Liveness, "liveness", true, "hosts probe their paths and take losses as evidence")
	f.DurationVar(&o.Hello, "hello", 20*time.Millisecond, "the agents' interval")
	f.DurationVar(&o.Outage, "outage", 0, "from a failure to its healing; between two events of --figure12 (default 1s, 10s with --figure12)")
	f.DurationVar(&o.Settle, "settle", time.Second, "before a failure, and after everything is used again")
	f.Uint64Var(&o.Seed, "seed", 1, "of the permutation, of what fails and in which order, of the transfers")
	f.StringVar(&o.Lab, "name", "failover", "name of the lab of network namespaces")
	f.BoolVar(&o.figure12, "figure12", false, "take the bouncing switches 3.0 and 3.1 away and bring them back, and watch the goodput (DRB Fig. 12)")
	f.DurationVar(&o.chaos, "chaos", 0, "check transfers by their hashes for so long, while links, switches and agents fail at random")
	f.StringVar(&o.plot, "plot", "", "`file` for a page with pictures (HTML)")
	f.StringVar(&o.trace, "trace", "", "`file` for every event from a failure to each host's last packet into the hole (text), of failures with agents")
	o.resultFlags(cmd, "an array of objects (with --figure12 or --chaos one object)")
	return cmd
}

const benchFailoverHelp = `Failover builds a lab of network namespaces with a weft stack at every host, which
sends to another one under drb, in a permutation. Then, again and again, a core
switch or a link below one fails, is healed, and is used again. It needs root.

Measured is the time from just before the failure to the last packet that left a
host for a path that needs what has failed: by packet sockets at the uplinks, with
the kernel's timestamps. So what waited in the host's own queue counts. Probes and
updates do not count. With --load below 1 no queue stands.

"Paused" are failures within 50 ms of which a processor ran nothing at all for 5 ms
or longer: what lies below a virtual machine may stop it. "The others" are all but
these.

"Others kept" are the paths over the same switch, of pairs that do not need the
failed link, which were used on.

A seen failure takes the port at the upper end down. Without agents that means
nothing to a host, whose own link stays up: it finds out as if it were silent,
only that switches answer some packets with an error. A silent failure drops all
packets that come in at both ends, hellos included.`

// agentsCommand is the process of the agents, for weft bench failover alone.
const agentsCommand = "failover-agents"

func newBenchFailoverAgentsCmd() *cobra.Command {
	var lab string
	var hello time.Duration
	var traced bool
	cmd := &cobra.Command{
		Use:    agentsCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failover.RunAgents(cmd.Context(), lab, hello, traced, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&lab, "name", "", "the lab")
	cmd.Flags().DurationVar(&hello, "hello", 0, "the agents' interval")
	cmd.Flags().BoolVar(&traced, "trace", false, "print what agents read of carriers")
	return cmd
}

// Times between the events.
const (
	defaultOutage   = time.Second
	figure12Between = 10 * time.Second
)

// complete fills in what the other flags decide, and checks it.
func (o *benchFailoverOptions) complete(cmd *cobra.Command) (err error) {
	if o.figure12 && o.chaos != 0 {
		return usagef("--figure12 and --chaos exclude each other; give one of them")
	}
	if o.Topology, err = config.Topology(o.topology); err != nil {
		return usagef("--topology: %w", err)
	}
	single := o.figure12 || o.chaos != 0
	switch o.agents {
	case "both":
		o.Agents = []bool{true, false}
		if single {
			o.Agents = []bool{true}
		}
	case "true", "false":
		o.Agents = []bool{o.agents == "true"}
	default:
		return usagef("--agents=%s: must be true, false or both", o.agents)
	}
	if len(o.Kinds) == 0 {
		return usagef("--kinds: name one of %s", strings.Join(failover.Kinds, ", "))
	}
	if o.Outage == 0 {
		o.Outage = defaultOutage
		if o.figure12 {
			o.Outage = figure12Between
		}
	}
	if o.figure12 && !cmd.Flags().Changed("load") {
		o.Load = 0
	}
	o.Machine = cpuModel() + ": " + machine()
	if o.chaos == 0 { // which has agents restart
		o.AgentProcess = []string{"/proc/self/exe", "bench", agentsCommand}
	}
	o.Complete()
	return usage(o.Options.Check())
}

func (o *benchFailoverOptions) run(cmd *cobra.Command) error {
	if err := o.complete(cmd); err != nil {
		return err
	}
	file, err := newReportFile("plot", o.plot)
	if err != nil {
		return err
	}
	defer file.discard()
	if o.trace != "" { // written as it happens: what is there is of use, also if the rest fails
		f, err := os.Create(o.trace)
		if err != nil {
			return cannotWrite("trace", o.trace, err)
		}
		defer f.Close()
		o.Trace = f
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	o.about = newRunInfo(o.Seed, 1)
	if err := testbed.CanUseNamespaces(); err != nil {
		return fmt.Errorf("bench failover: %w", err)
	}
	notes := cmd.ErrOrStderr()
	o.Note = func(s string) { fmt.Fprintln(notes, "note:", s) }
	fmt.Fprintf(notes, "%v\n%v, links of %g Mbit/s\n", o.about, o.Topology, o.RateMbit)
	switch {
	case o.chaos != 0:
		return o.soak(cmd)
	case o.figure12:
		return o.degrade(cmd, file)
	}
	return o.measure(cmd, file)
}

func (o *benchFailoverOptions) measure(cmd *cobra.Command, file *reportFile) error {
	p := newProgress(cmd.Context(), "failing")
	o.Progress = p.parts
	results, failed := failover.Run(cmd.Context(), o.Options)
	p.end()
	if len(results) == 0 {
		return failed
	}
	for _, r := range results {
		o.warn(r.CPUBound, r.IdlePercent)
	}
	printed := o.putResults(cmd.OutOrStdout(), o.about, results, func(w io.Writer) error { return failoverTable(w, results) })
	// Results that are not whole are shown, but not drawn.
	if failed == nil {
		failed = file.write(failoverCharts(o.about, results).Write)
	}
	return errors.Join(failed, printed)
}

func (o *benchFailoverOptions) degrade(cmd *cobra.Command, file *reportFile) error {
	p := newProgress(cmd.Context(), "waiting")
	o.Progress = p.parts
	d, err := failover.Figure12(cmd.Context(), o.Options)
	p.end()
	if err != nil {
		return err
	}
	o.warn(d.CPUBound, d.IdlePercent)
	if err := file.write(degradationCharts(o.about, d).Write); err != nil {
		return err
	}
	return o.putResults(cmd.OutOrStdout(), o.about, d, func(w io.Writer) error { return degradationTable(w, d) })
}

// errSoak makes the command fail when something went wrong.
var errSoak = errors.New("bench failover: the transfers or the databases were not as they must be, see above")

func (o *benchFailoverOptions) soak(cmd *cobra.Command) error {
	p := newProgress(cmd.Context(), "failing")
	o.Progress = p.set
	so := failover.SoakOptions{Options: o.Options, Duration: o.chaos}
	if !o.json {
		so.Event = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }
	}
	r, err := failover.Soak(cmd.Context(), so)
	p.end()
	if err != nil {
		return err
	}
	o.json = true // it has no table
	if err := o.putResults(cmd.OutOrStdout(), o.about, r, nil); err != nil {
		return err
	}
	if !r.OK() {
		return errSoak
	}
	return nil
}

// warn says that a comparison is void.
func (o *benchFailoverOptions) warn(bound bool, idle float64) {
	if bound {
		o.Note(fmt.Sprintf("the processors were idle %.0f %% of the time only, so this measures them and not the fabric, and comparisons are void: lower --rate", idle))
	}
}
