package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/simfile"
	"weft/internal/config"
)

// simPermutation are the flags of weft sim permutation.
type simPermutation struct {
	topology, policy string
	bytes            int64
	seed             uint64
	most             time.Duration
	resultOutput
}

func newSimPermutationCmd() *cobra.Command {
	var o simPermutation
	cmd := &cobra.Command{
		Use:   "permutation --topology SPEC|FILE",
		Short: "Have every host of a fabric of your own send to another one",
		Long: `Permutation simulates a fabric, computed or a graph, all of whose links have rates.
Every host sends to another one, drawn by the seed, and receives from another one.
weft sim run FILE does the same with other flows, failures and settings.`,
		Example: "  weft sim permutation --topology fabric.yaml --policy drb\n  weft sim permutation --topology fabric.yaml --json --csv permutation.csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.topology, "topology", "", "specification, or `FILE` (.yaml) of a topology or a graph")
	f.StringVar(&o.policy, "policy", "drb", "of hosts or of switches; in a graph of hosts, and not by congestion")
	f.Int64Var(&o.bytes, "bytes", 1<<20, "that each host sends")
	f.DurationVar(&o.most, "most", 10*time.Second, "of simulated time")
	f.Uint64Var(&o.seed, "seed", 1, "of all that is random")
	o.resultFlags(cmd, "an object")
	return cmd
}

func (o *simPermutation) run(ctx context.Context, w io.Writer) error {
	if o.topology == "" {
		return usagef("--topology is missing: give a specification such as fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000, or a file")
	}
	if o.bytes < 1 {
		return usagef("--bytes=%d: must be 1 or more", o.bytes)
	}
	f, err := simfile.Permutation(o.topology, o.policy, o.bytes, o.seed, o.most)
	var key config.KeyError
	if errors.As(err, &key) {
		if err = key.Unwrap(); !strings.HasPrefix(err.Error(), o.topology+":") { // which says where in the file
			err = fmt.Errorf("--topology %s, --policy %s: %w", o.topology, o.policy, err)
		}
		err = usage(err)
	}
	if err != nil {
		return err
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(o.seed, 1)
	run.tell()
	p := newProgress(ctx, "simulating")
	results, err := f.Run(ctx, 1, p.parts)
	p.end()
	if err != nil {
		return err
	}
	r := results[0]
	return o.putResults(w, run, r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d of %d flows of %d bytes ended, the last after %v; %.0f data packets, %.0f sent again, %.0f drops\n",
			r.Flows-r.Unfinished, r.Flows, o.bytes, time.Duration(r.LastMs*float64(time.Millisecond)).Round(time.Microsecond), r.DataPackets, r.Retransmits, r.Drops)
		return err
	})
}
