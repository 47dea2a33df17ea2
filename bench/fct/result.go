package fct

import (
	"time"

	"weft/bench/stats"
)

// Flows smaller than miceBytes are mice, flows larger than elephantBytes are elephants, before
// sizes are scaled (CONGA §5.2).
const (
	miceBytes     = 100_000
	elephantBytes = 10_000_000
)

// sizeClasses are those of Result.SizeClass.
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

// Result is what the flows of a size class took in a row under a load. Flows and Unfinished
// are of all seeds together. The other figures are medians over the seeds; 0 if there is no flow.
type Result struct {
	Policy      string  `json:"policy"`
	Where       Where   `json:"where"`
	Topology    string  `json:"topology"`
	Workload    string  `json:"workload"`
	Load        float64 `json:"load"`       // payload, as a part of what hosts can send out of their racks
	SizeClass   string  `json:"size_class"` // all, mice, elephants
	Flows       int     `json:"flows"`
	Unfinished  int     `json:"unfinished"` // at the deadline; they count as if they ended then
	MeanMs      float64 `json:"mean_ms"`
	P99Ms       float64 `json:"p99_ms"`
	SlowdownP50 float64 `json:"slowdown_p50"` // completion time by that of a flow alone
	SlowdownP99 float64 `json:"slowdown_p99"`
	IdlePercent float64 `json:"idle_percent"` // of the machine's processors; -1 if not known
	Traffic     string  `json:"traffic"`
	RateMbit    float64 `json:"rate_mbit"`
	Scale       float64 `json:"scale"` // of the workload's sizes
	Seed        uint64  `json:"seed"`  // the first
	Seeds       int     `json:"seeds"`
	Machine     string  `json:"machine,omitempty"`
}

// sample is a flow that has been played.
type sample struct {
	bytes       int64
	took, ideal time.Duration
	finished    bool
}

// run is a row under a load with a seed.
type run struct {
	samples []sample
	idle    float64       // percent
	late    time.Duration // by which a flow began too late, at most
	broken  error         // why a flow failed before the deadline; nil: none did
}

// summarise fills in the figures of r from a run of each seed.
func (r *Result) summarise(runs []run) {
	var mean, p99, slow50, slow99, idle []float64
	for _, run := range runs {
		idle = append(idle, run.idle)
		var ms, slow []float64
		sum := 0.0
		for _, s := range run.samples {
			if !inClass(r.SizeClass, s.bytes, r.Scale) {
				continue
			}
			r.Flows++
			if !s.finished {
				r.Unfinished++
			}
			t := float64(s.took) / float64(time.Millisecond)
			sum += t
			ms, slow = append(ms, t), append(slow, float64(s.took)/float64(s.ideal))
		}
		if len(ms) == 0 {
			continue
		}
		mean, p99 = append(mean, sum/float64(len(ms))), append(p99, stats.Percentile(ms, 99))
		slow50, slow99 = append(slow50, stats.Percentile(slow, 50)), append(slow99, stats.Percentile(slow, 99))
	}
	r.MeanMs, r.P99Ms = stats.Median(mean), stats.Median(p99)
	r.SlowdownP50, r.SlowdownP99 = stats.Median(slow50), stats.Median(slow99)
	r.IdlePercent = stats.Median(idle)
}
