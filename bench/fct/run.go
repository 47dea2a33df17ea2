package fct

import (
	"context"
	"errors"
	"slices"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

// rest is between two runs, for the queues to empty.
const rest = 300 * time.Millisecond

// bench is a call of Run.
type bench struct {
	*Options
	real    *topology.Topology         // with what has failed
	beds    map[Fabric]testbed.Testbed // opened when first needed
	unbuilt map[Fabric]error           // the same, why there is none
	closing error                      // of a fabric that is not needed any more
	errs    []error                    // by row, why it does not run; nil: it does
	alone   *alone
	runs    map[cell][]run // a run for each round, failed ones too
	done    int
}

// cell is a row under a load.
type cell struct{ row, load int }

// Run measures all rows under all loads. In each round, which has a seed of its own, it takes
// the rows in turn, in every other round backwards, and each row under all loads with the
// same flows. A row that cannot run here has results with an Error and no figures. A round that
// fails has none, and is counted. Results beside an error are complete: the error is of taking
// down a fabric.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := &bench{Options: &o, beds: make(map[Fabric]testbed.Testbed), unbuilt: make(map[Fabric]error), runs: make(map[cell][]run), errs: make([]error, len(o.Rows))}
	if b.real, _, err = o.WithFailure(); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, b.closing)
		for _, bed := range b.beds {
			err = errors.Join(err, bed.Close())
		}
	}()
	if err := b.supported(ctx); err != nil {
		return nil, err
	}
	if rows := b.order(0); len(rows) > 0 {
		err := b.measureAlone(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			b.refuse(rows, err)
		}
	}
	for round := range o.Seeds {
		for _, row := range b.order(round) {
			err := b.round(ctx, row, o.Seed+uint64(round))
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				b.fail(row, round, err)
			}
		}
	}
	b.doubts()
	base, byteTook := "", time.Duration(0)
	if b.alone != nil {
		base, byteTook = b.alone.base, b.alone.farByte()
	}
	return b.results(InLab, b.runs, b.errs, base, byteTook), nil
}

// refuse lets rows not run.
func (b *bench) refuse(rows []int, err error) {
	for _, row := range rows {
		b.note("%s has no figures: %v", b.Rows[row].Name, err)
		b.errs[row] = err
	}
}

// fail lets a row fail in a round, under the loads that it has not been measured under.
func (b *bench) fail(row, round int, err error) {
	b.note("%s, round %d: %v", b.Rows[row].Name, round+1, err)
	for load := range b.Loads {
		if c := (cell{row, load}); len(b.runs[c]) <= round {
			b.runs[c] = append(b.runs[c], run{idle: -1, failed: err})
			b.done++
		}
	}
}

// order is the rows of a round that run, by number.
func (b *bench) order(round int) (rows []int) {
	for i := range b.Rows {
		if b.errs[i] == nil {
			rows = append(rows, i)
		}
	}
	if round%2 == 1 {
		slices.Reverse(rows)
	}
	return rows
}

// bed returns the fabric of a row.
func (b *bench) bed(ctx context.Context, f Fabric) (testbed.Testbed, error) {
	bed, err := b.beds[f], b.unbuilt[f]
	if bed != nil || err != nil {
		return bed, err
	}
	if bed, err = b.Open(ctx, f); err != nil {
		b.unbuilt[f] = err
		return nil, err
	}
	b.beds[f] = bed
	return bed, nil
}

// supported finds the rows that cannot run, and those whose fabric cannot be built.
func (b *bench) supported(ctx context.Context) error {
	for i, row := range b.Rows {
		bed, err := b.bed(ctx, row.Fabric)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = bed.Supports(row.Hosts)
		}
		if err != nil {
			b.refuse([]int{i}, err)
		}
	}
	return nil
}

// round measures a row under each load.
func (b *bench) round(ctx context.Context, row int, seed uint64) (err error) {
	r := b.Rows[row]
	bed, err := b.bed(ctx, r.Fabric)
	if err != nil {
		return err
	}
	s, err := bed.Start(ctx, r.Hosts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i, load := range b.Loads {
		b.progress(r.Name)
		flows, err := b.plan(load, seed)
		if err != nil {
			return err
		}
		run, err := b.play(ctx, s, flows, r.Hosts.MPTCP)
		if err != nil {
			return err
		}
		if run.broken != nil {
			b.note("%s, load %g: %v; it counts as unfinished", r.Name, load, run.broken)
		}
		if run.lacking != "" {
			b.note("%s, load %g: %s; it is void", r.Name, load, run.lacking)
		}
		b.runs[cell{row, i}] = append(b.runs[cell{row, i}], run)
		b.done++
		waitUntil(ctx, time.Now().Add(rest))
	}
	return nil
}

// play plays the flows of a run. Of MPTCP a flow may lose its end: Linux 6.18 told receivers of
// the end of some flows before all bytes had come. Such a flow has not finished.
func (b *bench) play(ctx context.Context, s *testbed.Session, flows plan, mptcp bool) (r run, err error) {
	before, err := s.Counters()
	if err != nil {
		return r, err
	}
	idle := newIdleness()
	all, broken, err := play(ctx, s, flows, b.Duration+b.Drain, idle.begun)
	if mptcp && errors.As(err, new(shortfall)) {
		broken, err = err, nil
	}
	if err != nil {
		return r, err
	}
	after, err := s.Counters()
	if err != nil {
		return r, err
	}
	r.tcp, r.lacking = tcpBetween(s, before, after), after.Subflows.Since(before.Subflows).Lacking()
	r.idle, r.broken = idle.percent(), broken
	r.samples, r.jobs = flows.samples(all, func(src, dst topology.NodeID, bytes int64) time.Duration {
		return b.alone.took(bytes, linksBetween(b.Topology, src, dst), hostsMbit(b.Topology, src, dst, b.RateMbit))
	})
	for _, o := range all {
		r.late = max(r.late, o.late)
	}
	return r, nil
}
