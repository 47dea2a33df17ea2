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
	arrivals arrivals
	beds     map[string]testbed.Testbed // by Row.Balance, opened when first needed
	unbuilt  map[string]error           // the same, why there is none
	base     time.Duration
	runs     map[cell][]run
	done     int
}

// cell is a row under a load.
type cell struct{ row, load int }

// Run measures all rows under all loads. In each round, which has a seed of its own, it takes
// the rows in turn, in every other round backwards, and each row under all loads with the
// same flows. Rows that cannot run here are left out and noted.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	sizes, err := o.sizes()
	if err != nil {
		return nil, err
	}
	b := &bench{Options: &o, beds: make(map[string]testbed.Testbed), unbuilt: make(map[string]error), runs: make(map[cell][]run),
		arrivals: arrivals{o.Topology, o.RateMbit, sizes, o.Traffic, o.Duration}}
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
	return b.results(), nil
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

// bed returns the fabric with a rule of the switches.
func (b *bench) bed(ctx context.Context, balance string) (testbed.Testbed, error) {
	bed, err := b.beds[balance], b.unbuilt[balance]
	if bed != nil || err != nil {
		return bed, err
	}
	if bed, err = b.Open(ctx, balance); err != nil {
		b.unbuilt[balance] = err
		return nil, err
	}
	b.beds[balance] = bed
	return bed, nil
}

// supported leaves out the rows that cannot run, and those whose fabric cannot be built.
func (b *bench) supported(ctx context.Context) error {
	var rows []Row
	for _, row := range b.Rows {
		bed, err := b.bed(ctx, row.Balance)
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
	bed, err := b.bed(ctx, b.Rows[0].Balance)
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
		all, broken, err := play(ctx, s, []workload.Flow{{Dst: last, Bytes: 1}}, b.Drain)
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
	b.note("a flow of one byte takes %v in the idle fabric: two round trips and the programs; ideal times contain it", b.base.Round(10*time.Microsecond))
	return nil
}

// round measures a row under each load.
func (b *bench) round(ctx context.Context, row int, seed uint64) (err error) {
	r := b.Rows[row]
	bed, err := b.bed(ctx, r.Balance)
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
		flows, err := b.arrivals.flows(load, seed)
		if err != nil {
			return err
		}
		run, err := b.play(ctx, s, flows)
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

// play plays the flows of a run.
func (b *bench) play(ctx context.Context, s *testbed.Session, flows []workload.Flow) (r run, err error) {
	before := testbed.ReadCPU()
	all, broken, err := play(ctx, s, flows, b.Duration+b.Drain)
	if err != nil {
		return r, err
	}
	r.idle, r.broken = testbed.IdlePercent(before, testbed.ReadCPU()), broken
	for i, f := range flows {
		r.samples = append(r.samples, sample{
			bytes: f.Bytes, took: all[i].took, finished: all[i].finished,
			ideal: ideal(f.Bytes, hostsMbit(b.Topology, f, b.RateMbit), b.base),
		})
		r.late = max(r.late, all[i].late)
	}
	return r, nil
}

// results are by row, load and size class.
func (b *bench) results() (results []Result) {
	for i, row := range b.Rows {
		for j, load := range b.Loads {
			for _, class := range sizeClasses {
				r := Result{Policy: row.Name, Where: row.Where, Topology: b.Topology.String(), Workload: b.Workload, Load: load, SizeClass: class,
					Traffic: b.Traffic, RateMbit: b.RateMbit, Scale: b.Scale, Seed: b.Seed, Seeds: b.Seeds, Machine: b.Machine}
				r.summarise(b.runs[cell{i, j}])
				results = append(results, r)
			}
		}
	}
	return results
}
