package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weft/bench/papers"
)

func newSimDecideCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "decide [NAME...]",
		Short: "Try what figures that are out depend on",
		Long: `Decide runs experiments (all, if none is named) that have decisions: parameters that
the paper leaves open, each with other values than the experiment has. It runs each
experiment again with each value, and says of each row that is out and of which the
decision speaks whether it is moved: OK with the value. What no value moves does not
depend on the parameter, if the values span all that is plausible, and the paper's figure
is not between those with two of them.

It says as well which rows a value breaks: those that are OK without it and are not with
it. It succeeds whatever comes out. --store keeps findings in full with as many seeds as
you like, and replaces none by fewer. An experiment is decided if each of its rows that is
out is: weft sim run and weft sim report say by what.`,
		Example: "  weft sim decide 'drill-*' --quick\n  weft sim decide conga-f9 --seeds 3 --store bench/papers/results",
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.decide(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), experiments(), names)
		},
	}
	o.flags(cmd)
	o.resultFlags(cmd, "an array of objects")
	cmd.Flags().StringVar(&o.store, "store", "", "`directory` of results in which decisions.json is to be renewed, too: bench/papers/results")
	o.shares(cmd)
	return cmd
}

func (o *simOptions) decide(ctx context.Context, w, notes io.Writer, all []papers.Experiment, names []string) error {
	return o.do(ctx, w, notes, all, names, withDecisions)
}

// printFindings runs experiments with the values of their decisions, prints what these
// move, and keeps it where that is wanted.
func (o *simOptions) printFindings(ctx context.Context, w, notes io.Writer, t *simTask) error {
	if o.store != "" && o.Quick {
		return errQuickStore
	}
	keep, err := newVariantStore(o.store)
	if err != nil {
		return err
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := o.runInfo()
	run.tell()
	if without := withoutDecision(t.experiments); len(without) > 0 {
		fmt.Fprintf(notes, "left out, as they have no decision: %s\n", strings.Join(without, ", "))
	}
	reports, failed := o.compared(ctx, notes, t)
	if ctx.Err() != nil {
		return failed
	}
	found := papers.Findings(t.batch.Subjects, o.Options, reports)
	failed = errors.Join(failed, keep.decisions(found))
	return errors.Join(failed, o.putResults(w, run, found, func(w io.Writer) error {
		err := papers.WriteFindings(w, found)
		for i, s := range t.batch.Subjects {
			if s.Variant == nil && reports[i] != nil && !o.Quick {
				fmt.Fprintf(w, "%s: %s\n", s.Name, papers.Decide(s.Experiment, reports[i], found))
			}
		}
		return err
	}))
}

// withoutDecision names experiments that have none.
func withoutDecision(list []papers.Experiment) (names []string) {
	for _, e := range list {
		if len(e.Decisions) == 0 {
			names = append(names, e.Name)
		}
	}
	return names
}
