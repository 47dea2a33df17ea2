package fct

import (
	"fmt"
	"math"
	"slices"
	"time"

	"weft/bench/stats"
	"weft/bench/testbed"
)

// Flows smaller than miceBytes are mice, flows larger than elephantBytes are elephants, before
// sizes are scaled (CONGA §5.2).
const (
	miceBytes     = 100_000
	elephantBytes = 10_000_000
)

// jobsClass is the size class whose flows are the traffic's jobs.
const jobsClass = "jobs"

// sizeClasses are those of Result.SizeClass that every traffic has.
var sizeClasses = []string{"all", "mice", "elephants"}

// inClass reports whether a flow of a size counts in a class.
func inClass(class string, bytes int64, scale float64) bool {
	switch class {
	case "mice":
		return float64(bytes) < miceBytes*scale
	case "elephants":
		return float64(bytes) > elephantBytes*scale
	}
	return true
}

// Measured says where a Result is from.
const (
	InLab       = "lab"
	InSimulator = "simulator"
)

// What slowdowns divide by (Result.SlowdownBase). In a lab without the kernel's TCP it is
// something else (baseName).
const (
	labBase = "kernel TCP alone in the idle lab"
	simBase = "kernel TCP alone in the idle simulator"
)

// Result is what the flows of a size class took in a row under a load, in the rounds that were
// measured. Flows, Begun and Unfinished are of all of these together, IdlePercent of the one that
// had the least. The other figures are medians over those that have flows of the class; 0 if none
// has. A percentile is nil unless each of these has so many samples that one is above it.
type Result struct {
	Policy     string   `json:"policy"`
	Where      Where    `json:"where"`
	Measured   string   `json:"measured"` // lab, simulator
	Topology   string   `json:"topology"`
	Failure    string   `json:"failure"`
	Workload   string   `json:"workload"`
	Load       float64  `json:"load"`       // payload, as a part of what hosts can send out of their racks
	SizeClass  string   `json:"size_class"` // all, mice, elephants; jobs where the traffic has jobs
	Flows      int      `json:"flows"`      // planned
	Begun      int      `json:"begun"`      // the others wait for flows that did not end, and have no time
	Unfinished int      `json:"unfinished"` // at the deadline; they count as if they ended then
	MeanMs     float64  `json:"mean_ms"`
	P50Ms      float64  `json:"p50_ms"`
	P95Ms      *float64 `json:"p95_ms"`  // of 20 samples or more
	P99Ms      *float64 `json:"p99_ms"`  // of 100
	P999Ms     *float64 `json:"p999_ms"` // of 1000
	MaxMs      float64  `json:"max_ms"`
	// Slowdowns are completion times by that of a flow of the same size between hosts as far apart,
	// alone in the fabric without a failure. SlowdownBase says of what kind and where it was
	// measured, for all rows; "": it was not.
	SlowdownP50  float64  `json:"slowdown_p50"`
	SlowdownP99  *float64 `json:"slowdown_p99"` // of 100
	SlowdownBase string   `json:"slowdown_base"`
	BaseByteMs   float64  `json:"base_byte_ms"` // what a flow of one byte takes there between hosts far apart
	// MeanLowMs and MeanHighMs are the least and the most of the seeds' means. The median of
	// all possible seeds' means lies between them with ConfidencePercent: 100·(1-2^(1-n)) with
	// n seeds that have flows of the class, whatever the distribution is (the sign test's interval).
	MeanLowMs         float64 `json:"mean_low_ms"`
	MeanHighMs        float64 `json:"mean_high_ms"`
	ConfidencePercent float64 `json:"confidence_percent"`
	// IdlePercent is of the machine's processors, while flows begin, in the busiest round; -1 if
	// not known.
	IdlePercent float64 `json:"idle_percent"`
	// SYNRetransmits and Timeouts are of the kernel's TCP at all hosts, of flows of all sizes:
	// SYNs and SYN-ACKs that were sent again, each a second or more after the one before, and
	// timers that ran out. -1 in rows of weft's TCP and in the simulator.
	SYNRetransmits float64 `json:"syn_retransmits"`
	Timeouts       float64 `json:"timeouts"`
	// Void says that this does not measure the fabric: in a round the processors were idle so
	// little that it measures them, a planned flow did not begin, or connections of MPTCP had fewer
	// subflows than the row says.
	Void   bool `json:"void"`
	Rounds int  `json:"rounds"` // that were measured; 0: there are no figures
	Failed int  `json:"failed"` // rounds that failed
	// Error says why rounds have no figures, of the first one that failed; "": all have.
	Error    string  `json:"error"`
	Traffic  string  `json:"traffic"`
	RateMbit float64 `json:"rate_mbit"`
	Scale    float64 `json:"scale"` // of the workload's sizes
	Seed     uint64  `json:"seed"`  // the first
	Seeds    int     `json:"seeds"`
	Machine  string  `json:"machine,omitempty"`

	runs *[]run // of all sizes
}

// sample is a flow that has been played, or a job.
type sample struct {
	bytes       int64
	took, ideal time.Duration
	begun       bool // false: the flow before it did not end
	whole       bool // of a flow the same, of a job: all of its flows have begun
	finished    bool
}

// run is a row under a load with a seed.
type run struct {
	samples []sample
	jobs    []sample
	idle    float64       // percent
	late    time.Duration // by which a flow began too late, at most
	tcp     tcpCounters
	broken  error  // why a flow failed before the deadline; nil: none did
	lacking string // what connections of MPTCP lack; "": nothing
	failed  error  // why there is nothing of all this; nil: there is
}

// of returns the flows of a size class.
func (r *run) of(class string, scale float64) []sample {
	if class == jobsClass {
		return r.jobs
	}
	return slices.DeleteFunc(slices.Clone(r.samples), func(s sample) bool { return !inClass(class, s.bytes, scale) })
}

// slowdowns returns the completion times of samples that have begun, in milliseconds, and by
// the ideal ones.
func slowdowns(samples []sample) (ms, slow []float64) {
	for _, s := range samples {
		if s.begun {
			ms, slow = append(ms, float64(s.took)/float64(time.Millisecond)), append(slow, float64(s.took)/float64(s.ideal))
		}
	}
	return ms, slow
}

// summarise fills in the figures of r from a run of each seed. Flows that have not begun are
// unfinished, and have no time.
func (r *Result) summarise(runs []run) {
	var mean, p50, most, slow50 []float64
	p95, p99, p999, slow99 := stats.Tail{Percent: 95}, stats.Tail{Percent: 99}, stats.Tail{Percent: 99.9}, stats.Tail{Percent: 99}
	r.IdlePercent = -1
	for i, run := range runs {
		if run.failed != nil {
			if r.Failed++; r.Error == "" {
				r.Error = fmt.Sprintf("round %d: %v", i+1, run.failed)
			}
			continue
		}
		r.Rounds++
		r.Void = r.Void || run.lacking != ""
		if run.idle >= 0 && (r.IdlePercent < 0 || run.idle < r.IdlePercent) {
			r.IdlePercent = run.idle
		}
		samples := run.of(r.SizeClass, r.Scale)
		r.Flows += len(samples)
		for _, s := range samples {
			if s.begun {
				r.Begun++
			}
			if !s.finished {
				r.Unfinished++
			}
			r.Void = r.Void || !s.whole
		}
		ms, slow := slowdowns(samples)
		if len(ms) == 0 {
			continue
		}
		sum := 0.0
		for _, t := range ms {
			sum += t
		}
		mean = append(mean, sum/float64(len(ms)))
		p50, slow50 = append(p50, stats.Percentile(ms, 50)), append(slow50, stats.Percentile(slow, 50))
		p95.Add(ms)
		p99.Add(ms)
		p999.Add(ms)
		slow99.Add(slow)
		most = append(most, slices.Max(ms))
	}
	r.MeanMs, r.P50Ms, r.MaxMs, r.SlowdownP50 = stats.Median(mean), stats.Median(p50), stats.Median(most), stats.Median(slow50)
	r.P95Ms, r.P99Ms, r.P999Ms, r.SlowdownP99 = p95.Median(), p99.Median(), p999.Median(), slow99.Median()
	if n := len(mean); n > 0 {
		r.MeanLowMs, r.MeanHighMs = slices.Min(mean), slices.Max(mean)
		r.ConfidencePercent = Confidence(n)
	}
	r.countTCP(runs)
	r.Void = r.Void || r.IdlePercent >= 0 && r.IdlePercent < testbed.CPUBound
}

// Confidence is in percent how surely the median of all possible rounds lies between the least
// and the most of n.
func Confidence(n int) float64 { return 100 * (1 - math.Pow(2, 1-float64(n))) }

// classes are the size classes of the traffic, whether or not a row has been measured.
func (o *Options) classes() []string {
	jobs := false
	if o.File != nil {
		_, p, err := o.File.plan()
		jobs = err == nil && p.jobs > 0
	} else if t, err := parseTraffic(o.Traffic); err == nil {
		jobs = t.jobBytes() > 0
	}
	if !jobs {
		return sizeClasses
	}
	return append(slices.Clone(sizeClasses), jobsClass)
}

// results are by row, load and size class. errs has of each row why it has no figures; nil: all
// have. base and byteTook are what slowdowns divide by, and what a flow of one byte takes there.
func (o *Options) results(measured string, runs map[cell][]run, errs []error, base string, byteTook time.Duration) (results []Result) {
	f, _ := parseFailure(o.Failure, o.Topology) // checked
	classes := o.classes()
	for i, row := range o.Rows {
		for j, load := range o.Loads {
			all := runs[cell{i, j}]
			for _, class := range classes {
				r := Result{Policy: row.Name, Where: row.Where, Measured: measured, Topology: o.Topology.String(), Failure: f.name, Workload: o.WorkloadName(),
					Load: load, SizeClass: class, SlowdownBase: base, BaseByteMs: float64(byteTook) / float64(time.Millisecond),
					Traffic: o.Traffic, RateMbit: o.RateMbit, Scale: o.Scale, Seed: o.Seed, Seeds: o.Seeds, Machine: o.Machine, runs: &all}
				r.summarise(all)
				if errs != nil && errs[i] != nil {
					r.Error = errs[i].Error()
				}
				results = append(results, r)
			}
		}
	}
	return results
}
