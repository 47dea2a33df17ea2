package fct

import (
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// plan is the flows of a run, in the order of Start.
type plan struct {
	flows []workload.Flow // Job numbers the job, if there are jobs
	// after has of each flow the earlier one that must end before it begins; -1: none. nil:
	// none has any. Such a flow begins at its Start or then, whichever is later.
	after []int
	// apart, if above 0, is how long after the end of a flow the one that follows begins, finished
	// or not. 0: it begins at once, and never if the former does not finish.
	apart time.Duration
	// jobs is how many jobs the flows make; 0: none. A job is what an application waits for:
	// it begins with its first flow and ends with its last.
	jobs int
}

// follows returns the flow that must end before flow i begins, -1 if none.
func (p *plan) follows(i int) int {
	if p.after == nil {
		return -1
	}
	return p.after[i]
}

// add appends a flow that follows another one, -1: none.
func (p *plan) add(f workload.Flow, after int) {
	p.flows, p.after = append(p.flows, f), append(p.after, after)
}

// jobIdeals returns how long each job takes in a fabric that is idle but for it, by the link
// that carries most of it: out of a host or into one. each is how long so many bytes take over
// the link of a host.
func (p *plan) jobIdeals(each func(h topology.NodeID, bytes int64) time.Duration) []time.Duration {
	type end struct {
		job  uint32
		host topology.NodeID
		in   bool
	}
	sums := make(map[end]int64)
	for _, f := range p.flows {
		sums[end{f.Job, f.Src, false}] += f.Bytes
		sums[end{f.Job, f.Dst, true}] += f.Bytes
	}
	ideals := make([]time.Duration, p.jobs)
	for e, bytes := range sums {
		ideals[e.job] = max(ideals[e.job], each(e.host, bytes))
	}
	return ideals
}

// outcome is what became of a flow.
type outcome struct {
	begun    bool          // false: the flow before it did not end
	began    time.Duration // since the run's beginning
	late     time.Duration // by which it began too late
	took     time.Duration // until the deadline if it is not finished
	finished bool
}

// samples are the flows of a run, and its jobs. ideal is how long so many bytes take between
// two hosts in an idle fabric.
func (p *plan) samples(all []outcome, ideal func(src, dst topology.NodeID, bytes int64) time.Duration) (flows, jobs []sample) {
	for i, f := range p.flows {
		flows = append(flows, sample{bytes: f.Bytes, took: all[i].took, ideal: ideal(f.Src, f.Dst, f.Bytes), begun: all[i].begun, whole: all[i].begun, finished: all[i].finished})
	}
	if p.jobs == 0 {
		return flows, nil
	}
	first, last := make([]time.Duration, p.jobs), make([]time.Duration, p.jobs)
	jobs = make([]sample, p.jobs)
	for j, d := range p.jobIdeals(func(h topology.NodeID, bytes int64) time.Duration { return ideal(h, h, bytes) }) {
		jobs[j].ideal, jobs[j].finished, jobs[j].whole = d, true, true
	}
	for i, f := range p.flows {
		j, o := &jobs[f.Job], all[i]
		j.bytes += f.Bytes
		j.finished, j.whole = j.finished && o.finished, j.whole && o.begun
		if !o.begun {
			continue
		}
		if !j.begun || o.began < first[f.Job] {
			first[f.Job] = o.began
		}
		j.begun = true
		last[f.Job] = max(last[f.Job], o.began+o.took)
		j.took = last[f.Job] - first[f.Job]
	}
	return flows, jobs
}
