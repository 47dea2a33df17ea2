package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"weft/bench/papers"
	"weft/bench/papers/results"
)

// pool runs a batch and shows how far it is. If it is interrupted, it says what is not lost.
func (o *simOptions) pool(ctx context.Context, notes io.Writer, b papers.Batch, tell func(p *progress, subject int, r *papers.Report, err error)) error {
	// A run allocates next to nothing after its set-up. What the garbage collector frees is
	// left from earlier runs.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	what := fmt.Sprintf("%d experiments", len(b.Subjects))
	if len(b.Subjects) == 1 {
		what = b.Subjects[0].Name
	}
	p := newProgress(ctx, what)
	defer p.end()
	var last papers.Progress
	b.Watch = func(now papers.Progress) {
		last = now
		p.units(now)
	}
	err := b.Run(ctx, func(subject int, r *papers.Report, err error) { tell(p, subject, r, err) })
	if ctx.Err() != nil && o.cache != "" && last.Units > 0 {
		fmt.Fprintf(p.above(notes), "%d of %d seeds of experiments are in %s: the same command goes on from there\n", last.Saved, last.Units, o.cache)
	}
	return err
}

// reports runs a batch of experiments, and tells of each what it is, with what is known of
// its mutants and decisions, and what it took. It
// goes on when one fails. When ctx ends it tells of those that have ended.
func (o *simOptions) reports(ctx context.Context, notes io.Writer, b papers.Batch, tell func(r *papers.Report, err error)) error {
	known, err := results.Stored()
	if err != nil {
		return err
	}
	return o.pool(ctx, notes, b, func(p *progress, i int, r *papers.Report, err error) {
		if err == nil {
			r.Passing, r.Defined = known.Passing(r.Experiment), definedIn[r.Experiment]
			if kept := known.Runs[r.Experiment]; kept != nil {
				r.Stored = kept.String()
			}
			if len(known.Decisions) > 0 && !r.Quick {
				d := known.Decided(b.Subjects[i].Experiment, r)
				r.Decided = &d
			}
			fmt.Fprintf(p.above(notes), "%s: %s: %s\n", r.Experiment, r.Verdict, r.Took())
		}
		tell(r, err)
	})
}
