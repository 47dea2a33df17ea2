package simfile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
)

// Run simulates all policies under all loads with all seeds, so many at once. Results are by
// load, then policy, in the order of the file. progress, if not nil, is told how many runs are
// done, by one caller at a time.
func (f *File) Run(ctx context.Context, jobs int, progress func(done, total int)) ([]Result, error) {
	loads, seeds := f.loads(), f.Seeds
	runs := make([]run, len(loads)*len(f.Policies)*seeds)
	err := papers.Each(ctx, papers.Options{Jobs: jobs, Progress: progress}, len(runs), func(i int) (err error) {
		load, policy, seed := i/seeds/len(f.Policies), i/seeds%len(f.Policies), uint64(f.Seed+i%seeds)
		if runs[i], err = f.run(f.Policies[policy], loads[load], seed); err != nil {
			err = f.wrong(fmt.Sprintf("policies[%d]", policy), "seed %d: %s", seed, withoutPackage(err))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var results []Result
	for i := 0; i < len(runs); i += seeds {
		r := f.result(f.Policies[i/seeds%len(f.Policies)], loads[i/seeds/len(f.Policies)])
		r.summarise(runs[i : i+seeds])
		results = append(results, r)
	}
	return results, nil
}

// run is what a policy gave under a load with a seed.
type run struct {
	took    []float64 // ms of each flow, ascending; of those that did not end until the run did
	jobs    []float64 // of each job of an incast
	unended int       // flows
	perHost []float64 // payload received, Mbit/s
	hops    uint64
	last    time.Duration // when the last flow ended that did

	data, again, timeouts, drops, disorder, queue float64 // as of Result
}

func (f *File) run(policy string, load float64, seed uint64) (r run, err error) {
	source, err := f.plan.source(load, seed)
	if err != nil {
		return r, err
	}
	w := &watched{Source: source, underWay: make(map[workload.Flow]int)}
	jobs := make(map[uint32]time.Duration)
	count := func(flow workload.Flow, took time.Duration) {
		if flow.Start < f.Warmup {
			return
		}
		r.took = append(r.took, ms(took))
		jobs[flow.Job] = max(jobs[flow.Job], took)
	}
	c := f.config(policy)
	c.Seed, c.Workload = seed, w
	c.OnFlow = func(e sim.FlowEnd) {
		count(e.Flow, e.FCT)
		r.last = max(r.last, e.Start+e.FCT)
		w.end(e.Flow)
	}
	got, err := sim.Run(c)
	if err != nil {
		return r, err
	}
	for flow, n := range w.underWay {
		for range n {
			count(flow, got.End-flow.Start)
			if flow.Start >= f.Warmup {
				r.unended++
			}
		}
	}
	slices.Sort(r.took)
	if f.Traffic.Matrix == incast {
		for _, took := range jobs {
			r.jobs = append(r.jobs, ms(took))
		}
		slices.Sort(r.jobs)
	}
	for _, bytes := range got.DeliveredBytes {
		r.perHost = append(r.perHost, float64(bytes)*8/1e6/(got.End-f.Warmup).Seconds())
	}
	r.count(got, f.plan.fabric)
	return r, nil
}

// count sums up what switches and TCP did.
func (r *run) count(got *sim.Result, f fabric) {
	r.hops, r.data, r.again, r.timeouts = got.PacketHops, float64(got.DataPackets), float64(got.Retransmits), float64(got.Timeouts)
	for i, p := range got.Ports {
		r.drops += float64(p.Drops)
		if !f.ofHost(i) {
			r.queue = max(r.queue, float64(p.MaxBytes))
		}
	}
	var behind, arrived uint64
	for n, packets := range got.OutOfOrder {
		arrived += packets
		if n > 0 {
			behind += packets
		}
	}
	r.disorder = 100 * float64(behind) / float64(max(arrived, 1))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// watched remembers which flows of a Source are under way.
type watched struct {
	workload.Source
	underWay map[workload.Flow]int // those that are alike are counted
}

// Next is workload.Source's.
func (w *watched) Next() (workload.Flow, bool) {
	f, ok := w.Source.Next()
	if ok {
		w.underWay[f]++
	}
	return f, ok
}

// Done is workload.Source's.
func (w *watched) Done(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
	w.Source.Done(f, at, func(next workload.Flow) {
		w.underWay[next]++
		begin(next)
	})
}

func (w *watched) end(f workload.Flow) {
	if w.underWay[f]--; w.underWay[f] <= 0 {
		delete(w.underWay, f)
	}
}
