package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weft/bench/permutation"
	"weft/bench/testbed"
)

// measureAll runs the rows that the fabric supports.
func (d *demo) measureAll(ctx context.Context, rows []testbed.Row) error {
	var failed error
	for _, row := range rows {
		if err := d.bed.Supports(row); err != nil {
			d.note(fmt.Sprintf("%s is left out: %v", row.Name, err))
			for range d.options.permutations {
				d.progress.begin(row.Name + ", left out")
			}
			continue
		}
		switch err := d.measure(ctx, row); {
		case err == nil:
		case ctx.Err() != nil:
			return err
		default: // what others have measured stays
			d.note(fmt.Sprintf("%s is left out: %v", row.Name, err))
			failed = errors.Join(failed, fmt.Errorf("%s: %w", row.Name, err))
		}
	}
	switch {
	case len(d.outcomes) == 0 && failed != nil:
		return failed
	case len(d.outcomes) == 0:
		return fmt.Errorf("none of --policies %s runs %s", strings.Join(d.options.policies, ","), d.bed.Kind())
	}
	return nil
}

// measure runs one row under each permutation.
func (d *demo) measure(ctx context.Context, row testbed.Row) error {
	out := outcome{Row: row}
	for i := range d.options.permutations {
		what := row.Name
		if n := d.options.permutations; n > 1 {
			what = fmt.Sprintf("%s, permutation %d of %d", row.Name, i+1, n)
		}
		d.progress.begin(what)
		d.page.mark(what + " begins")
		r, err := d.runOne(ctx, row, d.options.seed+uint64(i))
		if err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return err
		}
		out.runs = append(out.runs, r)
	}
	out.summarise(d)
	d.outcomes = append(d.outcomes, out)
	if out.IdlePercent >= 0 && out.IdlePercent < 10 {
		d.note(fmt.Sprintf("%s: the processors were idle %.0f %% of the time only, so this measures them and not the fabric: lower --rate", row.Name, out.IdlePercent))
	}
	return nil
}

func (d *demo) runOne(ctx context.Context, row testbed.Row, seed uint64) (permutation.Result, error) {
	return d.bed.run(ctx, row, d.options.streams(d.topology, seed), permutation.Load{
		Warmup: d.options.warmup, Duration: d.options.duration, Progress: d.progress.time,
	})
}
