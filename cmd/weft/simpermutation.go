package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	simulator "weft/bench/sim"
	"weft/bench/sim/spray"
	"weft/bench/sim/workload"
	"weft/internal/config"
	"weft/resequencer"
	"weft/topology"
)

// simPermutation are the flags of weft sim permutation.
type simPermutation struct {
	topology, policy string
	bytes            int64
	seed             uint64
	most             time.Duration
}

func newSimPermutationCmd() *cobra.Command {
	var o simPermutation
	cmd := &cobra.Command{
		Use:   "permutation --topology SPEC|FILE",
		Short: "Have every host of a fabric of your own send to another one",
		Long: `Permutation simulates a fabric, computed or a graph, all of whose links have rates.
Every host sends to another one, drawn by the seed, and receives from another one.`,
		Example: "  weft sim permutation --topology fabric.yaml --policy drb",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.topology, "topology", "", "specification, or `FILE` (.yaml) of a topology or a graph")
	f.StringVar(&o.policy, "policy", "drb", "of hosts or of switches; in a graph of hosts, and not by congestion")
	f.Int64Var(&o.bytes, "bytes", 1<<20, "that each host sends")
	f.DurationVar(&o.most, "most", 10*time.Second, "of simulated time")
	f.Uint64Var(&o.seed, "seed", 1, "of all that is random")
	return cmd
}

// given is a workload of flows that begin at once.
type given []workload.Flow

func (g *given) Next() (f workload.Flow, ok bool) {
	if len(*g) == 0 {
		return f, false
	}
	f, *g = (*g)[0], (*g)[1:]
	return f, true
}

func (g *given) Done(workload.Flow, time.Duration, func(workload.Flow)) {}

func (o simPermutation) run(w io.Writer) error {
	if o.topology == "" {
		return usagef("--topology is missing: give a specification such as fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000, or a file")
	}
	if o.bytes < 1 {
		return usagef("--bytes=%d: must be 1 or more", o.bytes)
	}
	t, g, err := config.Fabric(o.topology)
	if err != nil {
		return err
	}
	hosts := 0
	if g != nil {
		hosts = g.NumHosts()
	} else {
		hosts = t.NumHosts()
	}
	if hosts < 2 {
		return usagef("--topology %s: it has %d hosts, must be 2 or more", o.topology, hosts)
	}
	flows := make(given, hosts)
	order := rand.New(rand.NewPCG(o.seed, 0)).Perm(hosts)
	for i, h := range order {
		flows[i] = workload.Flow{Src: topology.NodeID(h), Dst: topology.NodeID(order[(i+1)%hosts]), Bytes: o.bytes}
	}
	var last time.Duration
	c := simulator.Config{Topology: t, Graph: g, Seed: o.seed, Policy: o.policy, Duration: o.most, Delay: 5 * time.Microsecond,
		Queues: []simulator.Queue{{Bytes: 128 << 10}}, Workload: &flows,
		OnFlow: func(e simulator.FlowEnd) { last = max(last, e.FCT) }}
	if spray.Reorders(o.policy) {
		c.Resequencer = &resequencer.Config{Discipline: resequencer.Sequence, MinHold: 10 * time.Millisecond}
	}
	r, err := simulator.Run(c)
	if err != nil {
		return usagef("--topology %s, --policy %s: %w", o.topology, o.policy, err)
	}
	drops := uint64(0)
	for _, p := range r.Ports {
		drops += uint64(p.Drops)
	}
	fmt.Fprintf(w, "%d of %d flows of %d bytes ended, the last after %v; %d data packets, %d sent again, %d drops\n",
		r.Flows, hosts, o.bytes, last.Round(time.Microsecond), r.DataPackets, r.Retransmits, drops)
	return nil
}
