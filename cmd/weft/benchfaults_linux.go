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

	"weft/bench/faults"
)

// benchFaultsOptions are the flags of weft bench faults.
type benchFaultsOptions struct {
	bed     faults.Options
	only    []string
	healthy time.Duration
	resultOutput
	verbose bool
}

func newBenchFaultsCmd() *cobra.Command {
	var o benchFaultsOptions
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Do status, blame and doctor name what is broken, and nothing else?",
		Long:  benchFaultsHelp(),
		Example: "  weft bench faults --only slow-link,loss\n" +
			"  weft bench faults --healthy 1h",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.bed.Argv, o.bed.Env = []string{self}, os.Environ()
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.only, "only", nil, "the faults to try (default all)")
	f.DurationVar(&o.healthy, "healthy", 0, "break nothing for so long, and count what the tools say all the same")
	f.Float64Var(&o.bed.Rate, "rate", 20, "rate of every link in `Mbit/s`")
	f.Float64Var(&o.bed.Load, "load", 0.6, "part of its link's rate that each host of the traffic sends at most")
	f.DurationVar(&o.bed.Within, "within", faults.DefaultWithin, "how long the tools have to name a cause")
	f.StringVar(&o.bed.Lab, "name", "faults", "name of the lab of network namespaces")
	f.BoolVar(&o.verbose, "verbose", false, "tell each result at once, with all that the tools said")
	o.resultFlags(cmd, "an array of objects (with --healthy one object)")
	return cmd
}

func benchFaultsHelp() string {
	var s strings.Builder
	fmt.Fprint(&s, `Faults builds a lab of network namespaces with weft host at four hosts, weft switch or
its agent at all switches, and TCP between the hosts. Then it breaks one thing after the other,
asks weft status, blame and doctor each second for up to 10 s, as an operator of one host
would, and mends it. A fault counts if the first thing that one of them says names what is wrong
and where; what it says to do about it does not count, nor a sentence of more than three
alternatives. For faults at switches that none of them has named by then, weft doctor --fabric is
asked once; TOLD BY says so. What the doctor finds before anything is broken is told and left out.
It needs root, nft and tc.

Faults:
`)
	for _, f := range faults.All() {
		fmt.Fprintf(&s, "  %-20s %s\n", f.Name, f.What)
	}
	return strings.TrimSpace(s.String())
}

func (o *benchFaultsOptions) run(ctx context.Context, w, notes io.Writer) (err error) {
	list, err := o.choose()
	if err != nil {
		return usage(err)
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(0, 0) // nothing is drawn
	fmt.Fprintln(notes, run)
	o.bed.Notes = notes
	b, err := faults.NewBed(ctx, o.bed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if o.healthy > 0 {
		h, err := b.Healthy(ctx, o.healthy)
		if err != nil {
			return err
		}
		return o.putResults(w, run, h, h.Print)
	}
	results := []faults.Result{}
	p := newProgress(ctx, "breaking")
	failed := b.Run(ctx, list, func(r faults.Result) {
		results = append(results, r)
		if o.verbose {
			printJSON(notes, r)
		}
		p.of("breaking "+r.Fault, len(results), len(list))
	})
	p.end()
	return errors.Join(failed, o.putResults(w, run, results, func(w io.Writer) error { return faults.Print(w, results, o.bed.Within) }))
}

// choose checks the flags and returns the faults that they name.
func (o *benchFaultsOptions) choose() ([]faults.Fault, error) {
	switch {
	case !(o.bed.Rate > 0):
		return nil, fmt.Errorf("--rate=%g: must be above 0", o.bed.Rate)
	case !(o.bed.Load > 0 && o.bed.Load <= 1):
		return nil, fmt.Errorf("--load=%g: must be above 0, and 1 at most", o.bed.Load)
	case o.bed.Within <= 0:
		return nil, fmt.Errorf("--within=%v: must be above 0", o.bed.Within)
	case o.healthy < 0:
		return nil, fmt.Errorf("--healthy=%v: must be 0 or more", o.healthy)
	case o.healthy > 0 && len(o.only) > 0:
		return nil, errors.New("--healthy breaks nothing: leave --only out")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(faults.All(), func(f faults.Fault) bool { return f.Name == name }) {
			return nil, fmt.Errorf("--only: there is no fault %q: weft bench faults --help names them", name)
		}
	}
	list, err := faults.Select(o.only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	return list, nil
}
