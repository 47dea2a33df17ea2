package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weft/bench/papers"
	"weft/bench/papers/results"
)

func newSimCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the papers' experiments in a packet-level simulator",
		Long: `Sim runs the experiments of the papers that weft is made of, at their scale, with
the code that chooses paths, cuts flows and restores order at real hosts, and
prints the papers' figures beside what came out.`,
	}
	cmd.AddCommand(newSimListCmd(), newSimRunCmd(), newSimReportCmd(), newSimMutantsCmd(), newSimPermutationCmd(), newSimFCTCmd())
	return cmd
}

// simOptions are the flags of weft sim run and report.
type simOptions struct {
	papers.Options
	json   bool
	output string
	store  string // directory of results
	write  string // root of the repository whose documents are to be renewed
}

func (o *simOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "a smaller fabric or a shorter time: shows that it works, not what it says")
	f.Uint64Var(&o.Seed, "seed", 1, "of all that is random")
	f.IntVar(&o.Seeds, "seeds", 1, "how many, from --seed on: figures are their medians, with the least and the most, and verdicts are on these")
	f.IntVarP(&o.Jobs, "jobs", "j", runtime.GOMAXPROCS(0), "simulations at once, each on one core; results do not depend on it")
}

func (o *simOptions) check() error {
	if o.Jobs < 1 {
		return usagef("--jobs=%d: must be 1 or more", o.Jobs)
	}
	if o.Seeds < 1 || o.Seeds > maxSeeds {
		return usagef("--seeds=%d: must be from 1 to %d", o.Seeds, maxSeeds)
	}
	if o.Seed > math.MaxUint64-uint64(o.Seeds-1) {
		return usagef("--seed=%d: must be lower, for the last of --seeds=%d to be a seed", o.Seed, o.Seeds)
	}
	return nil
}

// enoughToKeep finds before a run that it has too few seeds for --store.
func (o *simOptions) enoughToKeep() error {
	if o.store != "" && !o.Quick && o.Seeds < papers.EnoughSeeds {
		return usagef("--store with --seeds=%d: must be %d or more, for an order to be decided", o.Seeds, papers.EnoughSeeds)
	}
	return nil
}

// maxSeeds is more than anyone waits for.
const maxSeeds = 100

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
}

func listExperiments(w io.Writer, all []papers.Experiment, asJSON bool) error {
	if asJSON {
		list := make([]listedExperiment, len(all))
		for i, e := range all {
			list[i] = listedExperiment{Experiment: e.Name, Source: e.Source, Title: e.Title, Mutants: []string{}}
			list[i].Stated, list[i].Inferred = papers.Apart(e.Setting)
			for _, m := range e.Mutants {
				list[i].Mutants = append(list[i].Mutants, m.Name)
			}
		}
		return printJSON(w, list)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, e.Source, e.Title)
	}
	return tw.Flush()
}

func newSimRunCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Run experiments and print the papers' figures beside ours",
		Long: `Run runs experiments by name; a name may be a pattern such as 'drb-*', or all.
What it prints depends on the seeds alone, not on --jobs; what the run took of the
machine goes to standard error. It succeeds whatever the verdicts are.

With --json one name gives an object, and several names or a pattern an array.`,
		Example: "  weft sim run drb-appendix-b\n" +
			"  weft sim run luopan-f16 --seeds 5\n" +
			"  weft sim run drb-f6-fattree --json\n" +
			"  weft sim run 'conga-*' --quick -j 2",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), experiments(), names)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON instead of tables")
	cmd.Flags().StringVar(&o.store, "store", "", "`directory` in which results are to be kept, too: bench/papers/results, from which weft sim report --write writes documents")
	cmd.Flags().StringVar(&o.output, "report", "", "`file` for the page that weft sim report writes, too")
	return cmd
}

func (o *simOptions) run(ctx context.Context, w, notes io.Writer, all []papers.Experiment, names []string) error {
	if err := o.check(); err != nil {
		return err
	}
	selected, err := papers.Select(all, names)
	if err != nil {
		return usage(err)
	}
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
	known, err := results.Stored()
	if err != nil {
		return err
	}
	var failed error
	reports := []*papers.Report{}
	for r, err := range o.reports(ctx, notes, selected) {
		if err == nil {
			r.Passing = known.Passing(r.Experiment)
			failed = errors.Join(failed, keep.report(r))
		}
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case o.json:
			reports = append(reports, r)
		default:
			if len(reports) > 0 {
				fmt.Fprintln(w)
			}
			reports = append(reports, r)
			failed = errors.Join(failed, r.WriteText(w))
		}
	}
	if len(reports) > 0 {
		failed = errors.Join(failed, file.write(o.page("run", names, reports).Write))
	}
	if !o.json {
		return failed
	}
	if len(names) == 1 && selected[0].Name == names[0] {
		if len(reports) == 0 {
			return failed
		}
		return errors.Join(failed, printJSON(w, reports[0]))
	}
	return errors.Join(failed, printJSON(w, reports))
}

// reports runs experiments one after the other, because it measures their speed. It ends
// when ctx ends, and goes on when one fails.
func (o *simOptions) reports(ctx context.Context, notes io.Writer, list []papers.Experiment) iter.Seq2[*papers.Report, error] {
	return func(yield func(*papers.Report, error) bool) {
		// A run allocates next to nothing after its set-up. What the garbage collector
		// frees is left from earlier runs.
		defer debug.SetGCPercent(debug.SetGCPercent(20))
		for _, e := range list {
			p := newProgress(e.Name)
			o.Progress = p.set
			r, err := papers.Run(ctx, e, o.Options)
			p.end()
			if err == nil {
				fmt.Fprintf(notes, "%s: %s: %s\n", e.Name, r.Verdict, r.Took())
			}
			if !yield(r, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

func newSimReportCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "report [NAME...]",
		Short: "Run experiments and draw the papers' figures beside ours, as a page of HTML",
		Long: `Report runs experiments (all, if none is named) and writes one page that needs
nothing else: verdicts, the papers' figures redrawn, every row and every parameter.

With --write it runs nothing, and writes the table of bench/RESULTS.md and the counts of
README.md and docs/research.md from the results that weft sim run --store has kept.`,
		Example: "  weft sim report\n  weft sim report 'drb-*' --quick -o drb.html\n  weft sim report --write .",
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.write != "" {
				if len(names) > 0 {
					return usagef("--write=%s runs nothing: name no experiment", o.write)
				}
				return writeDocuments(o.write, experiments())
			}
			return o.report(cmd.Context(), cmd.ErrOrStderr(), experiments(), names)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "report.html", "`file` to write")
	cmd.Flags().StringVar(&o.write, "write", "", "`root` of the repository whose documents are to be renewed")
	return cmd
}

func (o *simOptions) report(ctx context.Context, notes io.Writer, all []papers.Experiment, names []string) error {
	if err := o.check(); err != nil {
		return err
	}
	wanted := names
	if len(names) == 0 {
		wanted = []string{"all"}
	}
	selected, err := papers.Select(all, wanted)
	if err != nil {
		return usage(err)
	}
	if o.output == "" {
		return usagef(`--output="": name a file`)
	}
	file, err := newReportFile("output", o.output)
	if err != nil {
		return err
	}
	defer file.discard()
	var failed error
	var reports []*papers.Report
	known, err := results.Stored()
	if err != nil {
		return err
	}
	for r, err := range o.reports(ctx, notes, selected) {
		failed = errors.Join(failed, err)
		if err == nil {
			r.Passing = known.Passing(r.Experiment)
			reports = append(reports, r)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(reports) == 0 {
		return failed
	}
	return errors.Join(failed, file.write(o.page("report", names, reports).Write))
}

// page is what weft sim report writes of reports that a command has made.
func (o *simOptions) page(command string, names []string, reports []*papers.Report) papers.Page {
	p := papers.Page{
		Command: fmt.Sprintf("%s --seed %d -j %d", strings.Join(append([]string{"weft sim", command}, names...), " "), o.Seed, o.Jobs),
		Facts:   []papers.Parameter{{Name: "Machine", Value: cpuModel() + ": " + machine()}},
		Reports: reports,
	}
	if o.Seeds > 1 {
		p.Command += fmt.Sprintf(" --seeds %d", o.Seeds)
	}
	if o.Quick {
		p.Command += " --quick"
	}
	return p
}
