package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/fct"
)

// simFCT are the flags of weft sim fct.
type simFCT struct {
	benchFCTOptions
	delay time.Duration
}

func newSimFCTCmd() *cobra.Command {
	var o simFCT
	cmd := &cobra.Command{
		Use:   "fct --workload-file FILE",
		Short: "Simulate the flows of a workload file, as weft bench fct plays them in a lab",
		Long: `Fct plays the flows of a file that weft bench fct --write-workload has written, or that
has the same keys, with the rates and queues that a lab would have. It prints their
completion times.

The file is an object in JSON: topology (a specification), rate_mbit, workload and
traffic (names, for the results), load, scale, seed, duration_us, and flows. A flow has
start_us, src and dst (hosts by name), bytes, and may have job (from 0; all flows or
none) and after (the number of the flow, from 0, that must end before). Flows are in
the order of start_us.

A file's load must be what its flows offer of what hosts can send out of their racks in
duration_us, to within 10 %, and at most 1; a larger one is refused. Chains of flows, in which
one begins after another, offer what the fabric carries, and do not count.`,
		Example: "  weft bench fct --loads 0.5 --write-workload flows.json\n  weft sim fct --workload-file flows.json --rows kernel-ecmp,switch-drill,drb",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.read, "workload-file", "", "`file` of flows to play")
	f.StringSliceVar(&o.rows, "rows", fct.DefaultRows, "as of weft bench fct; those of which there is no model are left out")
	f.StringVar(&o.Failure, "failure", "symmetric", fct.FailureHelp)
	f.IntVar(&o.Seeds, "seeds", 3, "rounds, each with the same flows and a seed of its own for all else")
	f.DurationVar(&o.Drain, "drain", 5*time.Second, "time after the last flow may begin in which flows may finish")
	f.IntVar(&o.demo.flowcell, "flowcell", 4<<10, "`bytes` of a flowcell")
	f.DurationVar(&o.delay, "delay", fct.DefaultDelay, "of a link and the node behind it; weft bench fct --sim measures the lab's")
	o.resultFlags(cmd, "an array of objects")
	return cmd
}

func (o *simFCT) run(ctx context.Context, w, notes io.Writer) error {
	if o.read == "" {
		return usagef("--workload-file is missing: weft bench fct --write-workload makes one")
	}
	if o.delay < 0 || o.delay > time.Second {
		return usagef("--delay=%v: must be from 0 to 1s", o.delay)
	}
	if err := o.takeFile(func(string) bool { return false }); err != nil {
		return err
	}
	o.name = "sim"
	if err := o.complete(); err != nil {
		return err
	}
	o.Machine = ""
	if err := o.Check(); err != nil {
		return usage(err)
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	o.about = newRunInfo(o.Seed, o.Seeds)
	o.about.tell()
	p := newProgress(ctx, "")
	notes = p.above(notes)
	o.Progress = p.of
	o.Note = func(s string) { fmt.Fprintln(notes, "note:", s) }
	results, err := fct.Simulate(ctx, o.Options, fct.Idle{Delay: o.delay})
	p.end()
	if err != nil {
		return err
	}
	return o.print(w, results)
}
