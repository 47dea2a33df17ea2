package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/asymmetry"
	"weft/bench/testbed"
	"weft/encap"
	"weft/internal/table"
	"weft/policy"
)

// benchAsymmetryOptions are the flags of weft bench asymmetry.
type benchAsymmetryOptions struct {
	scenarios []string
	policies  []string
	fabric    string
	encap     string
	meter     bool
	resultOutput
	asymmetry.Options
}

func newBenchAsymmetryCmd() *cobra.Command {
	var o benchAsymmetryOptions
	cmd := &cobra.Command{
		Use:   "asymmetry",
		Short: "How policies share a fabric of which a link is down or slow",
		Long:  benchAsymmetryHelp(),
		Example: "  weft bench asymmetry --json\n" +
			"  weft bench asymmetry --scenarios link-down --policies presto,luopan,local --duration 20s\n" +
			"  weft bench asymmetry --fabric memory --meter=false --encap srv6",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.scenarios, "scenarios", nil, "what is wrong with the fabric (default all)")
	f.StringSliceVar(&o.policies, "policies", asymmetry.DefaultPolicies, "what to compare; \"all\" for "+strings.Join(policy.Names(), ", "))
	f.StringVar(&o.fabric, "fabric", "auto", "netns, memory, or auto: netns as root")
	f.StringVar(&o.encap, "encap", encap.CarrierIPIP.String(), "how a packet is told its path: ipip or srv6")
	f.BoolVar(&o.meter, "meter", true, "switches measure their queues and write into samples and marks of what they find; false: they only forward")
	f.Float64Var(&o.RateMbit, "rate", asymmetry.DefaultRateMbit, "rate of the links between switches in `Mbit/s`, hosts' are twice as fast; two cores carry the default, see idle")
	f.IntVar(&o.Hosts, "hosts", asymmetry.DefaultHosts, "hosts of a rack")
	f.IntVar(&o.Streams, "streams", asymmetry.DefaultStreams, "long streams of each host that sends")
	f.DurationVar(&o.Warmup, "warmup", asymmetry.DefaultWarmup, "time before what is measured")
	f.DurationVar(&o.Duration, "duration", asymmetry.DefaultDuration, "measured time of each policy in each scenario")
	f.IntVar(&o.Policy.FlowcellBytes, "flowcell", asymmetry.DefaultFlowcell, "`bytes` of a flowcell; Presto's 64 KB are a whole window of links this slow")
	f.DurationVar(&o.Policy.FlowletGap, "flowlet-gap", 0, "pause that ends a flowlet of letflow and conga; 0: the time of 25 full packets at --rate, half of a full queue's")
	f.DurationVar(&o.Tau, "tau", 0, "time constant of conga's rate estimators at hosts and switches; 0: the time of 133 full packets at --rate, which at 10 Gbit/s is CONGA's 160µs")
	f.DurationVar(&o.Policy.Expiry, "expiry", 0, "how long luopan uses a sample; 0: it follows the measured round trip")
	f.IntVar(&o.Policy.Samples, "samples", 0, "paths that luopan probes at a time (default 2)")
	f.Uint64Var(&o.Seed, "seed", 1, "of what is random in the hosts and the load")
	f.StringVar(&o.Lab, "name", "asymmetry", "name of the lab of network namespaces")
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

func benchAsymmetryHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Asymmetry builds a leaf-spine of three racks, T1 to T3, and four spines, A1 to A4,
in which the hosts of T1 and T2 send long streams to those of T3, and small
transfers (mice, 20 KB each over open connections, a tenth of the load) beside
them: Luopan's Fig. 1a. Hosts are weft's, under one policy after the other.

Percent of ideal is the goodput of both by what all streams could get at best if
every packet took the right path, as max-min fair shares. Shares are how the bytes
from T2 divide over its paths P1 (by A1) to P4. In Luopan's Table 1, of link-down,
they are 42.8, 18.7, 19.1 and 19.4 % for luopan, and about 25 % each for others.

Times that the papers give for 10 Gbit/s are scaled to --rate, and so is how long
receivers hold back what has overtaken: as long as a full queue takes.

Scenarios:
`)
	tw := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, c := range asymmetry.Scenarios() {
		fmt.Fprintf(tw, "  %s\t%s\n", c.Name, c.About)
	}
	tw.Flush()
	return strings.TrimSpace(s.String())
}

// complete fills in what the flags say, and checks it.
func (o *benchAsymmetryOptions) complete() (err error) {
	if o.Scenarios, err = asymmetry.SelectScenarios(o.scenarios); err != nil {
		return usagef("--scenarios: %w", err)
	}
	if len(o.policies) == 1 && o.policies[0] == "all" {
		o.policies = policy.Names()
	}
	if o.Rows, err = testbed.Select(o.policies); err != nil {
		return usagef("--policies: %w", err)
	}
	if o.Carrier, err = encap.ParseCarrier(o.encap); err != nil {
		return usagef("--encap: %w", err)
	}
	o.Plain = !o.meter
	switch o.fabric {
	case "auto", "netns", "memory":
		o.Memory = o.fabric == "memory"
	default:
		return usagef("--fabric=%s: must be auto, netns or memory", o.fabric)
	}
	o.Complete()
	return o.Check()
}

func (o *benchAsymmetryOptions) run(cmd *cobra.Command) error {
	if err := o.complete(); err != nil {
		return err
	}
	notes := cmd.ErrOrStderr()
	if !o.Memory {
		if err := testbed.CanUseNamespaces(); err != nil {
			if o.fabric == "netns" {
				return fmt.Errorf("--fabric=netns: %w; --fabric=memory needs nothing of this", err)
			}
			o.Memory = true
			fmt.Fprintf(notes, "The fabric is in memory instead of network namespaces: %v.\n", err)
		}
	}
	fmt.Fprintf(notes, "links of %g Mbit/s, flowcells of %d bytes, flowlet gap %v, tau %v\n",
		o.RateMbit, o.Policy.FlowcellBytes, o.Policy.FlowletGap.Round(time.Microsecond), o.Tau.Round(time.Microsecond))
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(o.Seed, 1)
	p := newProgress(cmd.Context(), "")
	o.Progress = p.of
	results, failed := asymmetry.Run(cmd.Context(), o.Options)
	p.end()
	for _, r := range results {
		if r.CPUBound {
			fmt.Fprintf(notes, "note: %s, %s: the processors were idle %.0f %% of the time only, so this measures them and not the fabric: lower --rate\n",
				r.Topology, r.Policy, r.IdlePercent)
		}
	}
	if len(results) == 0 {
		return failed
	}
	return errors.Join(failed, o.putResults(cmd.OutOrStdout(), run, results, func(w io.Writer) error {
		fmt.Fprintln(notes, run)
		return asymmetryTable(w, results)
	}))
}

func asymmetryTable(w io.Writer, results []asymmetry.Result) error {
	rows := asymmetryRows(results)
	return table.Table{Head: rows[0], Rows: rows[1:], Text: 3, Keys: 2}.Write(w, table.Width)
}

// asymmetryRows are the table's, its head first.
func asymmetryRows(results []asymmetry.Result) [][]string {
	rows := [][]string{{"topology", "policy", "encap", "% of ideal", "Mbit/s", "mice p50 ms", "p99 ms", "given up",
		"P1 %", "P2 %", "P3 %", "P4 %", "retransmits", "broken", "probing %", "formula %", "idle %"}}
	for _, r := range results {
		row := []string{r.Topology, r.Policy, r.Encap, fmt.Sprintf("%.1f", r.PercentOfIdeal), fmt.Sprintf("%.1f", r.GoodputMbit),
			fmt.Sprintf("%.0f", r.MiceP50/1e3), fmt.Sprintf("%.0f", r.MiceP99/1e3), fmt.Sprint(r.MiceGivenUp)}
		for _, path := range []string{"P1", "P2", "P3", "P4"} {
			row = append(row, fmt.Sprintf("%.1f", r.SharePerPath[path]))
		}
		row = append(row, fmt.Sprint(r.Retransmits), fmt.Sprint(r.BrokenFlows))
		if p := r.Probing; p != nil {
			row = append(row, fmt.Sprintf("%.2f", p.MeasuredPercent), fmt.Sprintf("%.2f", p.FormulaPercent))
		} else {
			row = append(row, "", "")
		}
		rows = append(rows, append(row, fmt.Sprintf("%.0f", r.IdlePercent)))
	}
	return rows
}
