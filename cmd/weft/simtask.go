package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"weft/bench/papers"
	"weft/bench/papers/results"
)

// simTask is what a command is to run.
type simTask struct {
	experiments []papers.Experiment
	names       []string // that they were asked for by
	with        string   // what runs beside each
	batch       papers.Batch
	cache       *partCache // nil: none
}

// What runs beside each experiment, as plans call it.
const (
	alone         = ""
	withMutants   = "mutants"
	withDecisions = "decisions"
)

// task is what is to be run of the experiments that are named (all, if none is), with what
// is beside each, and where its parts are kept.
func (o *simOptions) task(all []papers.Experiment, names []string, with string) (*simTask, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = []string{"all"}
	}
	selected, err := papers.Select(all, names)
	if err != nil {
		return nil, usage(err)
	}
	cache, err := newPartCache(o.cache, o.Quick)
	if err != nil {
		return nil, err
	}
	b, err := o.batch(selected, with)
	if errors.Is(err, papers.ErrNoDecision) {
		return nil, usage(err)
	}
	if err != nil {
		return nil, err
	}
	b.Keep = cache.keeper()
	return &simTask{selected, names, with, b, cache}, nil
}

// batch is all that is to be run of experiments, with what is beside each.
func (o *simOptions) batch(list []papers.Experiment, with string) (b papers.Batch, err error) {
	b = papers.Batch{
		Options: o.Options,
		Weigh:   func(u papers.Unit) float64 { return results.Cost(u.Name) },
	}
	switch with {
	case alone:
		b.Subjects = papers.Subjects(list)
	case withMutants:
		b.Subjects, err = papers.WithMutants(list)
	case withDecisions:
		b.Subjects, err = papers.WithDecisions(list)
	default:
		err = fmt.Errorf("nobody knows what the %s of experiments are", with)
	}
	return b, err
}

// do runs a task, or a share of it, and prints what is to be printed.
func (o *simOptions) do(ctx context.Context, w, notes io.Writer, all []papers.Experiment, names []string, with string) error {
	t, err := o.task(all, names, with)
	if err != nil {
		return err
	}
	if o.shard.N > 0 {
		return o.runShard(ctx, notes, t)
	}
	return o.print(ctx, w, notes, t)
}

// print runs a task, prints what came out, and keeps it where that is wanted.
func (o *simOptions) print(ctx context.Context, w, notes io.Writer, t *simTask) error {
	switch t.with {
	case withMutants:
		return o.printTrials(ctx, w, notes, t)
	case withDecisions:
		return o.printFindings(ctx, w, notes, t)
	}
	return o.printReports(ctx, w, notes, t)
}

// compared runs a task with something beside each experiment, and returns the report of
// each of its subjects, nil where there is none. The error may be of some alone.
func (o *simOptions) compared(ctx context.Context, notes io.Writer, t *simTask) (reports []*papers.Report, failed error) {
	reports = make([]*papers.Report, len(t.batch.Subjects))
	err := o.pool(ctx, notes, t.batch, func(_ *progress, i int, r *papers.Report, err error) {
		reports[i] = r
		failed = errors.Join(failed, err)
	})
	return reports, errors.Join(failed, err)
}
