package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weft/bench/papers"
	"weft/bench/papers/results"
	"weft/internal/table"
)

func newSimMutantsCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "mutants [NAME...]",
		Short: "Try whether experiments can tell the papers' mechanisms from none",
		Long: `Mutants runs experiments (all, if none is named), and each again with a policy or
a mechanism replaced by one that must not pass: random choices for DRB, random ports
for DRILL, flowlets without feedback for CONGA. A mutant is caught if it neither agrees
nor is in order, and a row about what was replaced tells it from the experiment itself,
which does not disagree. An experiment whose mutant passes is no evidence for what was
replaced; weft sim run says so.

It fails if a mutant passes that is not known to. --store keeps full trials of five seeds
or more, and replaces none by fewer. With --stored the experiments themselves do not run again
where that directory has them, with the same setting and the same seeds: half the time.`,
		Example: "  weft sim mutants --quick\n  weft sim mutants 'drb-*' --seeds 5 --store bench/papers/results",
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.mutants(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), experiments(), names)
		},
	}
	o.flags(cmd)
	o.resultFlags(cmd, "an array of objects")
	cmd.Flags().StringVar(&o.store, "store", "", "`directory` of results in which mutants.json is to be renewed, too: bench/papers/results")
	cmd.Flags().BoolVar(&o.stored, "stored", false, "take the experiments themselves from --store, where it has them")
	o.shares(cmd)
	return cmd
}

func (o *simOptions) mutants(ctx context.Context, w, notes io.Writer, all []papers.Experiment, names []string) error {
	return o.do(ctx, w, notes, all, names, withMutants)
}

// printTrials runs experiments with their mutants, prints what is told from what, and keeps
// it where that is wanted.
func (o *simOptions) printTrials(ctx context.Context, w, notes io.Writer, t *simTask) error {
	keep, err := newVariantStore(o.store)
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
	if t.batch.Given, err = o.given(notes); err != nil {
		return err
	}
	run := o.runInfo()
	run.tell()
	reports, failed := o.compared(ctx, notes, t)
	if ctx.Err() != nil {
		return failed
	}
	trials := papers.Trials(t.batch.Subjects, o.Options, reports)
	failed = errors.Join(failed, keep.mutants(trials), unknownPassing(trials))
	return errors.Join(failed, o.putResults(w, run, trials, func(w io.Writer) error { return writeTrials(w, trials) }))
}

// given takes experiments from --store, if they are wanted from there.
func (o *simOptions) given(notes io.Writer) (func(papers.Subject) *papers.Report, error) {
	switch {
	case !o.stored:
		return nil, nil
	case o.store == "":
		return nil, usagef("--stored: experiments are taken from --store: give it a directory, such as bench/papers/results")
	}
	all, err := results.Read(os.DirFS(o.store))
	if err != nil {
		return nil, err
	}
	return func(s papers.Subject) *papers.Report {
		run := all.Runs[s.Name]
		if s.Variant != nil || run == nil {
			return nil
		}
		r := run.Report(s.Experiment, o.Options)
		if r != nil {
			fmt.Fprintf(notes, "%s: as kept %s\n", s.Name, run)
		}
		return r
	}, nil
}

// unknownPassing fails if a mutant passes that is not known to.
func unknownPassing(trials []papers.Trial) (failed error) {
	for _, t := range trials {
		if t.Passes && results.Known(t.Experiment, t.Mutant) == "" {
			failed = errors.Join(failed, fmt.Errorf("%s: passes as well where %s: give it a row that tells, or say in bench/papers/results/passing.go why it has none", t.Experiment, t.Mutant))
		}
	}
	return failed
}

func writeTrials(w io.Writer, trials []papers.Trial) error {
	tw := table.NewWriter(w, -1)
	fmt.Fprintln(tw, "experiment\tmutant\tcaught\titself\tmutant's verdict\trows that tell it")
	caught, passing := 0, 0
	for _, t := range trials {
		word := "-"
		switch {
		case t.Caught:
			word = "yes"
			caught++
		case t.Passes:
			word = "NO"
			passing++
		}
		rows := strings.Join(t.By, "; ")
		if more := t.Told - len(t.By); more > 0 {
			rows += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Experiment, t.Mutant, word, t.Itself, t.Verdict, rows)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d mutants are caught, %d pass; of the rest the experiment says nothing in this form\n", caught, len(trials), passing)
	return err
}
