package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"weft/bench/papers"
	"weft/internal/table"
)

func newSimCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the papers' experiments in a packet-level simulator",
		Long: `Sim runs the experiments of the papers that weft is made of, at their scale, with
the code that chooses paths, cuts flows and restores order at real hosts, and
prints the papers' figures beside what came out.`,
	}
	for _, c := range []*cobra.Command{newSimRunCmd(), newSimReportCmd(), newSimMutantsCmd(), newSimDecideCmd(), newSimPermutationCmd(), newSimFCTCmd()} {
		cmd.AddCommand(longWork(c))
	}
	cmd.AddCommand(newSimListCmd(), newSimMergeCmd())
	return cmd
}

// simOptions are the flags of weft sim run, report, mutants, decide and merge.
type simOptions struct {
	papers.Options
	resultOutput
	output string
	store  string // directory of results
	stored bool   // experiments themselves are taken from it
	write  string // root of the repository whose documents are to be renewed
	cache  string // directory of parts
	shard  shard
}

func (o *simOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "a smaller fabric or a shorter time: shows that it works, not what it says")
	f.Uint64Var(&o.Seed, "seed", 1, "of all that is random")
	f.IntVar(&o.Seeds, "seeds", 1, "how many, from --seed on: figures are their medians, with the least and the most, and verdicts are on these")
	f.IntVarP(&o.Jobs, "jobs", "j", runtime.GOMAXPROCS(0), "simulations at once, of all experiments and seeds, each on one core; results do not depend on it")
	f.StringVar(&o.cache, "cache", "", "`directory` that keeps what each seed of an experiment gives, and from which the same build takes it again")
}

// shares is the flag of what several machines can share.
func (o *simOptions) shares(cmd *cobra.Command) {
	cmd.Flags().Var(&o.shard, "shard", "run the i-th of n shares of experiments and seeds only, into --cache; weft sim merge prints the reports")
}

// outputs are the flags of what is printed and kept.
func (o *simOptions) outputs(cmd *cobra.Command) {
	f := cmd.Flags()
	o.resultFlags(cmd, "JSON")
	f.StringVar(&o.store, "store", "", "`directory` in which results are to be kept, too: bench/papers/results, from which weft sim report --write writes documents")
	f.StringVar(&o.output, "report", "", "`file` for the page that weft sim report writes, too")
}

func (o *simOptions) check() error {
	if o.Jobs < 1 {
		return usagef("--jobs=%d: must be 1 or more", o.Jobs)
	}
	if o.Seeds < 1 || o.Seeds > papers.MaxSeeds {
		return usagef("--seeds=%d: must be from 1 to %d", o.Seeds, papers.MaxSeeds)
	}
	if o.Seed > math.MaxUint64-uint64(o.Seeds-1) {
		return usagef("--seed=%d: must be lower, for the last of --seeds=%d to be a seed", o.Seed, o.Seeds)
	}
	return o.checkShard()
}

// enoughToKeep finds before a run that it has too few seeds for --store.
func (o *simOptions) enoughToKeep() error {
	if o.store != "" && !o.Quick && o.Seeds < papers.EnoughSeeds {
		return usagef("--store with --seeds=%d: must be %d or more, for an order to be decided", o.Seeds, papers.EnoughSeeds)
	}
	return nil
}

func newSimListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the experiments",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listExperiments(cmd.OutOrStdout(), experiments(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of objects instead of a table")
	return cmd
}

// listedExperiment is an experiment in the list's JSON.
type listedExperiment struct {
	Experiment string             `json:"experiment"`
	Source     string             `json:"source"`
	Title      string             `json:"title"`
	Stated     []papers.Parameter `json:"stated"`
	Inferred   []papers.Parameter `json:"inferred"`
	Mutants    []string           `json:"mutants"`
	Decisions  []string           `json:"decisions"` // parameters
}

func listExperiments(w io.Writer, all []papers.Experiment, asJSON bool) error {
	if asJSON {
		list := make([]listedExperiment, len(all))
		for i, e := range all {
			list[i] = listedExperiment{Experiment: e.Name, Source: e.Source, Title: e.Title, Mutants: []string{}, Decisions: []string{}}
			list[i].Stated, list[i].Inferred = papers.Apart(e.Setting)
			for _, m := range e.Mutants {
				list[i].Mutants = append(list[i].Mutants, m.Name)
			}
			for _, d := range e.Decisions {
				list[i].Decisions = append(list[i].Decisions, d.Parameter)
			}
		}
		return printJSON(w, list)
	}
	tw := table.NewWriter(w, -1)
	for _, e := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, e.Source, e.Title)
	}
	return tw.Flush()
}

func newSimRunCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Run experiments and print the papers' figures beside ours, or a simulation of your own",
		Long: `Run runs experiments by name; a name may be a pattern such as 'drb-*', or all.
What it prints depends on the seeds alone, not on --jobs; what the run took of the
machine goes to standard error. It succeeds whatever the verdicts are. Where it is known
which mutants pass, or what rows that are out depend on, it says so: see weft sim mutants
and weft sim decide.

With --json one name gives an object, and several names or a pattern an array.

Simulations of all experiments and seeds run at once, as many as --jobs says. --cache keeps
each seed of an experiment when it has ended, so that a run that was interrupted goes on,
and --shard leaves the rest to other machines: docs/research.md has recipes.

A FILE that ends in .yaml describes a simulation of your own: fabric, flows, failures, and
policies, which are compared in one table (docs/research.md). Of the flags it takes
--jobs, --json, which prints an array, and --report, which draws the distributions.`,
		Example: "  weft sim run drb-appendix-b\n" +
			"  weft sim run examples/sim/compare.yaml --report compare.html\n" +
			"  weft sim run luopan-f16 --seeds 5\n" +
			"  weft sim run drb-f6-fattree --json\n" +
			"  weft sim run 'conga-*' --quick -j 2\n" +
			"  weft sim run all --seeds 10 --cache results\n" +
			"  weft sim run all --seeds 10 --cache results --shard 3/8",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if slices.ContainsFunc(names, isSimFile) {
				if err := onlyFlags(cmd, ownFlags); err != nil {
					return err
				}
				return o.runFile(cmd.Context(), cmd.OutOrStdout(), names)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), experiments(), names)
		},
	}
	o.flags(cmd)
	o.outputs(cmd)
	o.shares(cmd)
	return cmd
}

func (o *simOptions) run(ctx context.Context, w, notes io.Writer, all []papers.Experiment, names []string) error {
	return o.do(ctx, w, notes, all, names, alone)
}

// printReports runs experiments, prints their reports, and writes and keeps them where that
// is wanted.
func (o *simOptions) printReports(ctx context.Context, w, notes io.Writer, t *simTask) error {
	file, err := newReportFile("report", o.output)
	if err != nil {
		return err
	}
	defer file.discard()
	keep, err := newResultStore(o.store, o.Quick)
	if err != nil {
		return err
	}
	if err := o.enoughToKeep(); err != nil {
		return err
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := o.runInfo()
	run.tell()
	var failed error
	reports := []*papers.Report{}
	err = o.reports(ctx, notes, t.batch, func(r *papers.Report, err error) {
		failed = errors.Join(failed, err)
		if err != nil {
			return
		}
		failed = errors.Join(failed, keep.report(r))
		if !o.json {
			if len(reports) > 0 {
				fmt.Fprintln(w)
			}
			failed = errors.Join(failed, r.WriteText(w))
		}
		reports = append(reports, r)
	})
	failed = errors.Join(failed, err)
	if len(reports) > 0 {
		failed = errors.Join(failed, file.write(o.page(run, "run", t.names, reports).Write))
	}
	printed := func(io.Writer) error { return nil } // as they came
	if len(t.names) == 1 && t.experiments[0].Name == t.names[0] {
		if len(reports) == 0 {
			return failed
		}
		return errors.Join(failed, o.putResults(w, run, reports[0], printed))
	}
	return errors.Join(failed, o.putResults(w, run, reports, printed))
}

// runInfo is of a run that begins now.
func (o *simOptions) runInfo() runInfo { return newRunInfo(o.Seed, o.Seeds) }
