package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/named"
	"weft/bench/testbed"
	"weft/encap"
	"weft/fabric"
	"weft/internal/table"
	"weft/lab"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// benchPermutationOptions are the flags of weft bench permutation.
type benchPermutationOptions struct {
	demo           demoOptions // topology, rate, durations, seed, flowcell
	routing, name  string
	rows, families []string
	shape          *topology.Topology
	graph          *graph.Graph // nil: the computed fabric
	self, env      []string     // weft itself, as a program
	bySIDs         bool
	probes         int    // a second of each host
	dir            string // for the graph's file
	resultOutput
	ran      runInfo
	progress *progress
}

func newBenchPermutationCmd() *cobra.Command {
	var o benchPermutationOptions
	cmd := &cobra.Command{
		Use:   "permutation",
		Short: "A permutation by weft host or embedded Hosts, in a computed fabric or one that runs BGP",
		Long: `Permutation builds a lab and runs weft host, or a program with weft's own TCP, at all
of its hosts, in one way after the other. Every host sends one TCP stream to a host as
far away as can be, and small requests beside it. With --routing bgp switches run FRR and have an
operator's addresses; hosts learn the fabric by BGP, or with --encap srv6 from a
file, and send to the SIDs of spines. It needs root.

Rows: kernel-ecmp runs no weft; kernel-drb is mode offload with drb; gateway-presto
and gateway-luopan are mode gateway with presto and luopan. drb and presto are
embedded Hosts (uplink.NewHost). These are told an operator's fabric, which one
program for all hosts cannot learn by a session at each.`,
		Example: "  weft bench permutation --topology leaf-spine:leaves=4,spines=4,hosts=4 --routing bgp --families 4,6\n" +
			"  weft bench permutation --routing bgp --encap srv6 --rows kernel-drb",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.self, o.env = []string{self}, os.Environ()
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	topologyFlag(cmd, &o.demo.topology)
	f.StringVar(&o.routing, "routing", "static", "how switches find routes: static, by weft, or bgp, by FRR and with an operator's addresses")
	f.StringSliceVar(&o.rows, "rows", nil, "what to compare (default all): "+strings.Join(permutationRowNames(), ", "))
	f.StringSliceVar(&o.families, "families", []string{"4"}, "what hosts speak, 4 or 6 or both in turn; 6 with --routing bgp")
	f.StringVar(&o.demo.encap, "encap", encap.CarrierIPIP.String(), "ipip or, with --routing bgp, srv6, to micro-SIDs (F3216)")
	f.IntVar(&o.probes, "probes", 0, "most probes a second of each host (default 2000, which is a host's, divided by the number of hosts, which share this machine)")
	f.Float64Var(&o.demo.rate, "rate", 8, "rate of every link in `Mbit/s`")
	f.DurationVar(&o.demo.duration, "duration", 6*time.Second, "measured time of each run")
	f.DurationVar(&o.demo.warmup, "warmup", 3*time.Second, "time before that")
	f.IntVar(&o.demo.flowcell, "flowcell", 4<<10, "`bytes` of a flowcell")
	f.IntVar(&o.demo.permutations, "permutations", 1, "runs of each row, each with a permutation of its own; medians are shown")
	f.Uint64Var(&o.demo.seed, "seed", 1, "of the first permutation, and of an operator's addresses")
	f.StringVar(&o.name, "name", "perm", "name of the lab of network namespaces")
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

// permutationRow is how all hosts run weft.
type permutationRow struct{ name, mode, policy string } // mode "": they do not

// modeEmbedded is no mode of weft host: its TCP is that of an embedded Host.
const modeEmbedded = "embedded"

var permutationRows = []permutationRow{
	{"kernel-ecmp", "", ""},
	{"kernel-drb", "offload", "drb"},
	{"gateway-presto", "gateway", "presto"},
	{"gateway-luopan", "gateway", "luopan"},
	{"drb", modeEmbedded, "drb"},
	{"presto", modeEmbedded, "presto"},
}

func permutationRowNames() (names []string) {
	for _, r := range permutationRows {
		names = append(names, r.name)
	}
	return names
}

// check returns the rows, and checks the flags.
func (o *benchPermutationOptions) check() (rows []permutationRow, err error) {
	if o.routing != "static" && o.routing != "bgp" {
		return nil, usagef("--routing %s: must be static or bgp", o.routing)
	}
	o.demo.fabric, o.demo.resequencer = "netns", "presto"
	if err := o.demo.check(); err != nil {
		return nil, err
	}
	o.bySIDs = o.demo.encap == encap.CarrierSRv6.String()
	if o.bySIDs && o.routing != "bgp" {
		return nil, usagef("--encap srv6: here to an operator's SIDs, so give --routing bgp; weft demo --encap srv6 has weft's own")
	}
	if o.probes < 0 {
		return nil, usagef("--probes %d: must be 0 or more", o.probes)
	}
	if len(o.families) == 0 {
		return nil, usagef("--families names none; take 4 or 6")
	}
	for _, f := range o.families {
		if f != "4" && f != "6" {
			return nil, usagef("--families: %q: must be 4 or 6", f)
		}
		if f == "6" && o.routing != "bgp" {
			return nil, usagef("--families 6: computed fabrics have no IPv6 addresses; give --routing bgp")
		}
	}
	if o.rows == nil {
		o.rows = permutationRowNames()
	}
	if rows, err = named.Select("row", permutationRows, func(r permutationRow) string { return r.name }, o.rows); err != nil {
		return nil, usagef("--rows: %w", err)
	}
	return rows, nil
}

func (o *benchPermutationOptions) run(ctx context.Context, w, notes io.Writer) (err error) {
	rows, err := o.check()
	if err != nil {
		return err
	}
	if o.shape, err = topology.Parse(o.demo.topology); err != nil {
		return usagef("--topology: %w", err)
	}
	if o.probes == 0 {
		o.probes = max(2000/o.shape.NumHosts(), 50)
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "weft-permutation-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	o.ran = newRunInfo(o.demo.seed, o.demo.permutations)
	config := lab.Config{Name: o.name, RateMbit: o.demo.rate, Topology: o.shape}
	if o.routing == "bgp" {
		if err := o.makeGraph(); err != nil {
			return err
		}
		config.Topology, config.Graph = nil, o.graph
	}
	o.progress = newProgress(ctx, "")
	defer o.progress.end()
	o.progress.plan(append([]float64{buildSeconds(o.shape)}, slices.Repeat([]float64{o.demo.runSeconds()}, len(rows)*len(o.families)*o.demo.permutations)...)...)
	notes = o.progress.above(notes)
	o.progress.begin("building " + o.demo.topology)
	config.Progress = o.progress.set
	l, err := lab.Hold(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, n := range l.Notes {
		fmt.Fprintln(notes, n)
	}
	var results []permutationResult
	for _, row := range rows {
		list, err := o.measure(ctx, l, row)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		results = append(results, list...)
	}
	o.progress.end()
	return o.putResults(w, o.ran, results, func(w io.Writer) error { return o.table(w, results) })
}

func (o *benchPermutationOptions) table(w io.Writer, results []permutationResult) error {
	fmt.Fprintf(w, "%v\n%s, routing %s, %g Mbit/s\n\n", o.ran, o.shape, o.routing, o.demo.rate)
	tw := table.NewWriter(w, 3)
	fmt.Fprintln(tw, "row\tIPv\tencap\t% of ideal\tJain\tretransmits\tRTT p50 ms\tp99 ms\tspines' shares %\tidle %\t")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.1f\t%.3f\t%d\t%.1f\t%.1f\t%.1f to %.1f\t%.0f\t\n", r.Row, r.Family, r.Encap, r.PercentOfIdeal, r.Jain,
			r.Retransmits, r.RTTP50/1e3, r.RTTP99/1e3, 100*r.SpineMin, 100*r.SpineMax, r.IdlePercent)
	}
	return tw.Flush()
}

// makeGraph gives the shape an operator's addresses and, for srv6, its switches SIDs.
func (o *benchPermutationOptions) makeGraph() (err error) {
	spec := operator.Spec(o.shape, o.demo.seed)
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; o.bySIDs && n.Tier >= 2 {
			n.SIDs.Node = netip.MustParsePrefix(fmt.Sprintf("fcbb:bbbb:%x::/48", i+1))
		}
	}
	if o.graph, err = graph.New(spec); err != nil {
		return err
	}
	return os.WriteFile(o.graphFile(), o.graph.Text(), 0o600)
}

func (o *benchPermutationOptions) graphFile() string { return filepath.Join(o.dir, "graph.yaml") }

// hosts says what runs at each host, and at which address it is measured.
func (o *benchPermutationOptions) hosts(row permutationRow, family string) (hosts []testbed.DaemonHost, err error) {
	for n := range o.shape.Hosts() {
		h := testbed.DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr}
		if o.graph != nil {
			own := o.graph.Node(graph.NodeID(n.ID))
			h.Name = own.Name
			for _, a := range own.Addresses {
				if a.Is6() == (family == "6") {
					h.Address = a
				}
			}
		}
		if row.mode != "" {
			if h.Config, err = o.config(n.ID, row); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// config is a host's configuration.
func (o *benchPermutationOptions) config(host topology.NodeID, row permutationRow) (string, error) {
	r := o.demo.reseq()
	text := fmt.Sprintf("mode: %s\npolicy: %s\nuser: root\nflowcell_bytes: %d\nresequencer: {hold: %v, min_hold: %v}\nfailures: {budget: %d}\n",
		row.mode, row.policy, o.demo.flowcell, r.Hold, r.MinHold, o.probes)
	switch {
	case o.graph == nil:
		return text + "topology: " + o.shape.String() + "\n", nil
	case o.bySIDs:
		return text + "encapsulation: srv6\ntopology: " + o.graphFile() + "\n", nil
	}
	edge := o.graph.Up(graph.NodeID(host))[0].Peer
	leaf := o.graph.Node(edge)
	rack := leaf.Prefixes[slices.IndexFunc(leaf.Prefixes, func(p netip.Prefix) bool { return p.Addr().Is4() })]
	gateway, ok := fabric.Gateway(o.graph, edge, rack)
	if !ok {
		return "", fmt.Errorf("%s has no address in %v", leaf.Name, rack)
	}
	return text + fmt.Sprintf("topology: bgp\nbgp: {as: %d, neighbors: [%v=%d]}\n", 4250000000+uint32(host)+1, gateway, leaf.AS), nil
}
