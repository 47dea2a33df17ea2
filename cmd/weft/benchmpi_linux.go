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

	"weft/bench/mpi"
	"weft/bench/named"
	"weft/bench/stats"
	"weft/bench/testbed"
	"weft/internal/config"
	"weft/lab"
	"weft/topology"
)

// benchMPIOptions are the flags of weft bench mpi.
type benchMPIOptions struct {
	mpi.Options
	rows     []string
	topology string
	rate     float64
	repeat   int
	name     string
	json     bool

	self, env []string // weft itself, as a program
	shape     *topology.Topology
}

// mpiRow is a way to spread packets.
type mpiRow struct{ name, about, balance, host string }

var mpiRows = []mpiRow{
	{"kernel-ecmp", "the kernels' ECMP by the five-tuple", "", ""},
	{"gateway-presto", "weft host in mode gateway, flowcells of 8 KB", "", "mode: gateway\npolicy: presto\nflowcell_bytes: 8192\n"},
	{"offload-drb", "weft host in mode offload, packets by digit reversal", "", "mode: offload\npolicy: drb\n"},
	{"host-auto", "weft host by its defaults", "", "mode: auto\n"},
	{"switch-drill", "switches by drill, plain hosts", "drill", ""},
	{"switch-drb", "switches by digit reversal, plain hosts", "drb", ""},
}

// mpiResult is a row's.
type mpiResult struct {
	Row         string    `json:"row"`
	Pattern     string    `json:"pattern"`
	Topology    string    `json:"topology"`
	RateMbit    float64   `json:"rate_mbit"`
	Bytes       int       `json:"bytes"`
	Ranks       int       `json:"ranks"`
	Seconds     float64   `json:"seconds"` // median of all rounds
	All         []float64 `json:"all_seconds"`
	Retransmits int64     `json:"retransmits"`
}

func newBenchMPICmd() *cobra.Command {
	var o benchMPIOptions
	cmd := &cobra.Command{
		Use:   "mpi",
		Short: "How long OpenMPI's collectives take, by who spreads packets",
		Long:  benchMPIHelp(),
		Example: "  weft bench mpi\n" +
			"  weft bench mpi --pattern alltoall --rows kernel-ecmp,switch-drill --json",
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
	topologyFlag(cmd, &o.topology)
	f.Float64Var(&o.rate, "rate", 10, "rate of every link in `Mbit/s`")
	f.StringVar(&o.Pattern, "pattern", "shift", "what ranks do: "+strings.Join(mpi.Patterns, ", "))
	f.IntVar(&o.Bytes, "bytes", 1<<20, "that a rank sends in a round")
	f.IntVar(&o.By, "by", 4, "shift: how many places on the receiver is")
	f.IntVar(&o.Rounds, "rounds", 5, "rounds of each start of the program")
	f.IntVar(&o.repeat, "repeat", 3, "starts of the program in each row, with new connections")
	f.StringSliceVar(&o.rows, "rows", nil, "what to compare (default all): "+strings.Join(mpiRowNames(), ", "))
	f.StringVar(&o.name, "name", "mpi", "name of the labs of network namespaces")
	f.BoolVar(&o.json, "json", false, "print an array of objects instead of a table")
	return cmd
}

func mpiRowNames() (names []string) {
	for _, r := range mpiRows {
		names = append(names, r.name)
	}
	return names
}

func benchMPIHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Mpi builds a lab for each row in turn, and runs a program of OpenMPI with a rank at each
host. It prints how long a round of the pattern takes until the last rank has done. In shift
each rank sends to the rank some places on, in alltoall a part to each, in allreduce they
add up. It needs root and OpenMPI (on Debian: openmpi-bin, libopenmpi-dev, gcc).

Ranks use the kernel's TCP with cubic. Ranks that wait poll, so the processors are never idle, and
daemons of hosts get their turn late. Which connections collide is decided anew at each start
of the program.

Rows:
`)
	for _, r := range mpiRows {
		fmt.Fprintf(&s, "  %-15s %s\n", r.name, r.about)
	}
	return strings.TrimSpace(s.String())
}

// check returns the rows, and checks the flags.
func (o *benchMPIOptions) check() (rows []mpiRow, err error) {
	if o.rows == nil {
		o.rows = mpiRowNames()
	}
	if rows, err = named.Select("row", mpiRows, func(r mpiRow) string { return r.name }, o.rows); err != nil {
		return nil, usagef("--rows: %w", err)
	}
	if o.shape, err = config.Topology(o.topology); err != nil {
		return nil, usagef("--topology: %w", err)
	}
	ranks := o.shape.NumHosts()
	switch {
	case !slices.Contains(mpi.Patterns, o.Pattern):
		return nil, usagef("--pattern=%q: unknown; known: %s", o.Pattern, strings.Join(mpi.Patterns, ", "))
	case !(o.rate >= minRate && o.rate <= maxRate):
		return nil, usagef("--rate=%g: must be from %g to %g Mbit/s", o.rate, minRate, maxRate)
	case o.Bytes < 4*ranks || o.Bytes > 1<<30:
		return nil, usagef("--bytes=%d: must be from %d, four for each rank, to %d", o.Bytes, 4*ranks, 1<<30)
	case o.Pattern == "shift" && (o.By < 1 || o.By >= ranks):
		return nil, usagef("--by=%d: must be from 1 to %d", o.By, ranks-1)
	case o.Rounds < 1 || o.Rounds > maxRounds:
		return nil, usagef("--rounds=%d: must be 1 to %d", o.Rounds, maxRounds)
	case o.repeat < 1 || o.repeat > maxRounds:
		return nil, usagef("--repeat=%d: must be 1 to %d", o.repeat, maxRounds)
	}
	// Ten times what all bytes take over one link, and a minute to start. One round more connects.
	perRound := float64(o.Bytes) * 8 * float64(ranks) / (o.rate * 1e6)
	o.Limit = time.Minute + time.Duration(10*perRound*float64(o.Rounds+1)*float64(time.Second))
	return rows, nil
}

func (o *benchMPIOptions) run(ctx context.Context, w, notes io.Writer) error {
	rows, err := o.check()
	if err != nil {
		return err
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		return fmt.Errorf("bench mpi: %w", err)
	}
	program, err := mpi.Build(ctx)
	if err != nil {
		return fmt.Errorf("bench mpi: %w", err)
	}
	defer program.Remove()
	var results []mpiResult
	for _, row := range rows {
		r, err := o.measure(ctx, program, row, notes)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		results = append(results, r)
	}
	if o.json {
		return printJSON(w, results)
	}
	fmt.Fprintf(w, "%s\n%s, %g Mbit/s; %s of %d bytes, %d ranks; median of %d rounds\n\n", machine(), o.topology, o.rate, o.Pattern, o.Bytes, o.shape.NumHosts(), o.Rounds*o.repeat)
	table := [][]string{{"row", "seconds", "least", "most", "retransmits"}}
	for _, r := range results {
		table = append(table, []string{r.Row, fmt.Sprintf("%.2f", r.Seconds), fmt.Sprintf("%.2f", slices.Min(r.All)), fmt.Sprintf("%.2f", slices.Max(r.All)),
			fmt.Sprint(r.Retransmits)})
	}
	return alignedTable(w, table)
}

// rated is the fabric with the rate of its links, of which hosts that adapt make use.
func (o *benchMPIOptions) rated() string {
	if strings.Contains(o.topology, "rate=") {
		return o.topology
	}
	sep := ","
	if !strings.Contains(o.topology, ":") {
		sep = ":"
	}
	spec := fmt.Sprintf("%s%shost-rate=%g,fabric-rate=%g", o.topology, sep, o.rate, o.rate)
	if strings.HasPrefix(o.topology, "leaf-spine") { // has no third layer
		return spec
	}
	return fmt.Sprintf("%s,core-rate=%g", spec, o.rate)
}

// measure builds a row's lab and runs the program in it.
func (o *benchMPIOptions) measure(ctx context.Context, program *mpi.Program, row mpiRow, notes io.Writer) (r mpiResult, err error) {
	p := newProgress("building " + o.topology + " for " + row.name)
	l, err := lab.Hold(ctx, lab.Config{Name: o.name, RateMbit: o.rate, Topology: o.shape, Balance: row.balance, Progress: p.set})
	p.end()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, n := range l.Notes {
		fmt.Fprintln(notes, n)
	}
	var hosts []testbed.DaemonHost
	for n := range o.shape.Hosts() {
		h := testbed.DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr}
		if row.host != "" {
			h.Config = fmt.Sprintf("%suser: root\nfailures: {budget: 125}\ntopology: %s\n", row.host, o.rated())
		}
		hosts = append(hosts, h)
	}
	d, err := testbed.StartDaemons(ctx, l, hosts, o.self, o.env)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Session()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r = mpiResult{Row: row.name, Pattern: o.Pattern, Topology: o.topology, RateMbit: o.rate, Bytes: o.Bytes, Ranks: o.shape.NumHosts()}
	for i := range o.repeat {
		p := newProgress(row.name)
		p.set(i, o.repeat)
		took, err := program.Run(ctx, l, o.shape, o.Options)
		p.end()
		if err != nil {
			return r, err
		}
		for _, t := range took {
			r.All = append(r.All, t.Seconds())
		}
	}
	r.Seconds = stats.Median(r.All)
	counters, err := s.Counters()
	r.Retransmits = counters.Retransmits
	return r, err
}
