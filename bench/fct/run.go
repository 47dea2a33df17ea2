package fct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/topology"
)

const (
	// baseFlows are played one after the other to learn what an idle fabric takes.
	baseFlows = 30
	// rest is between two runs, for the queues to empty.
	rest = 300 * time.Millisecond
)

// bench is a call of Run.
type bench struct {
	*Options
	real    *topology.Topology         // with what has failed
	beds    map[Fabric]testbed.Testbed // opened when first needed
	unbuilt map[Fabric]error           // the same, why there is none
	base    time.Duration
	runs    map[cell][]run
	done    int
}

// cell is a row under a load.
type cell struct{ row, load int }

// Run measures all rows under all loads. In each round, which has a seed of its own, it takes
// the rows in turn, in every other round backwards, and each row under all loads with the
// same flows. Rows that cannot run here are left out and noted.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := &bench{Options: &o, beds: make(map[Fabric]testbed.Testbed), unbuilt: make(map[Fabric]error), runs: make(map[cell][]run)}
	if b.real, _, err = o.WithFailure(); err != nil {
		return nil, err
	}
	defer func() {
		for _, bed := range b.beds {
			err = errors.Join(err, bed.Close())
		}
	}()
	if err := b.supported(ctx); err != nil {
		return nil, err
	}
	if err := b.measureBase(ctx); err != nil {
		return nil, err
	}
	for round := range o.Seeds {
		for _, row := range b.order(round) {
			if err := b.round(ctx, row, o.Seed+uint64(round)); err != nil {
				return nil, fmt.Errorf("%s: %w", b.Rows[row].Name, err)
			}
		}
	}
	b.doubts()
	return b.results(InLab, b.runs), nil
}

// order is the rows of a round, by number.
func (b *bench) order(round int) (rows []int) {
	for i := range b.Rows {
		rows = append(rows, i)
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

// supported leaves out the rows that cannot run, and those whose fabric cannot be built.
func (b *bench) supported(ctx context.Context) error {
	var rows []Row
	for _, row := range b.Rows {
		bed, err := b.bed(ctx, row.Fabric)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = bed.Supports(row.Hosts)
		}
		if err != nil {
			b.note("%s is left out: %v", row.Name, err)
			continue
		}
		rows = append(rows, row)
	}
	b.Rows = rows
	if len(rows) == 0 {
		return errors.New("none of the rows runs here")
	}
	return nil
}

// measureBase learns what a flow of one byte takes at least in the idle fabric, between hosts
// that are far apart: with the kernel's TCP where that runs.
func (b *bench) measureBase(ctx context.Context) (err error) {
	bed, err := b.bed(ctx, b.Rows[0].Fabric)
	if err != nil {
		return err
	}
	hosts := plainHosts()
	if bed.Supports(hosts) != nil {
		hosts = b.Rows[0].Hosts
	}
	s, err := bed.Start(ctx, hosts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	last := topology.NodeID(len(s.Hosts) - 1)
	for range baseFlows {
		all, broken, err := play(ctx, s, plan{flows: []workload.Flow{{Dst: last, Bytes: 1}}}, b.Drain, nil)
		if err := errors.Join(err, broken); err != nil {
			return fmt.Errorf("in the idle fabric: %w", err)
		}
		if f := all[0]; f.finished && (b.base == 0 || f.took < b.base) {
			b.base = f.took
		}
	}
	if b.base == 0 {
		return fmt.Errorf("in the idle fabric no flow of one byte finished within %v", b.Drain)
	}
	if b.OnDelay != nil {
		// The way there and back, twice.
		b.OnDelay(b.base / time.Duration(4*len(b.real.PathsOrAll(0, last).Path(0).Links)))
	}
	b.note("a flow of one byte takes %v in the idle fabric: two round trips and the programs; ideal times contain it", b.base.Round(10*time.Microsecond))
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
		b.runs[cell{row, i}] = append(b.runs[cell{row, i}], run)
		b.done++
		waitUntil(ctx, time.Now().Add(rest))
	}
	return nil
}

// play plays the flows of a run. Of MPTCP a flow may lose its end: Linux 6.18 told receivers of
// the end of some flows before all bytes had come. Such a flow has not finished.
func (b *bench) play(ctx context.Context, s *testbed.Session, flows plan, mptcp bool) (r run, err error) {
	counted, err := s.Counters()
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
	if r.tcp, err = tcpSince(s, counted); err != nil {
		return r, err
	}
	r.idle, r.broken = idle.percent(), broken
	r.samples, r.jobs = flows.samples(all, func(src, dst topology.NodeID, bytes int64) time.Duration {
		return ideal(bytes, hostsMbit(b.real, src, dst, b.RateMbit), b.base)
	})
	for _, o := range all {
		r.late = max(r.late, o.late)
	}
	return r, nil
}
