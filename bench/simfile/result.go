package simfile

import (
	"slices"

	"weft/bench/stats"
)

// Result is what a policy gave under a load. Flows, Unfinished, Jobs, PacketHops are of all seeds
// together; figures are medians over seeds. A percentile is nil unless every seed has so many
// flows that one is above it.
type Result struct {
	Policy   string   `json:"policy"`
	Load     *float64 `json:"load"` // null: flows begin together, or are listed
	Topology string   `json:"topology"`
	Matrix   string   `json:"matrix"`
	Sizes    string   `json:"sizes"`
	Seed     uint64   `json:"seed"` // the first
	Seeds    int      `json:"seeds"`

	Flows      int      `json:"flows"`
	Unfinished int      `json:"unfinished"` // they count as if they had ended with the run
	MeanMs     float64  `json:"mean_ms"`
	MeanLowMs  float64  `json:"mean_low_ms"` // the least of the seeds' means
	MeanHighMs float64  `json:"mean_high_ms"`
	P50Ms      float64  `json:"p50_ms"`
	P95Ms      *float64 `json:"p95_ms"`
	P99Ms      *float64 `json:"p99_ms"`
	P999Ms     *float64 `json:"p999_ms"`
	MaxMs      float64  `json:"max_ms"`
	LastMs     float64  `json:"last_ms"` // when the last flow ended that did, since the beginning
	// Of jobs of an incast: until the last server's part has arrived.
	Jobs      int      `json:"jobs"`
	JobMeanMs *float64 `json:"job_mean_ms"`
	JobP99Ms  *float64 `json:"job_p99_ms"`
	// GoodputMbit is the payload that a host received, from warmup to the end of the run, the mean
	// of all hosts.
	GoodputMbit float64 `json:"goodput_mbit"`
	// GoodputMeanMbit is the mean of the seeds' goodputs, and Goodput95Mbit how far its interval of
	// 95 % confidence goes to each side (Student's t); nil with one seed.
	GoodputMeanMbit   float64  `json:"goodput_mean_mbit"`
	Goodput95Mbit     *float64 `json:"goodput_95_mbit"`
	DataPackets       float64  `json:"data_packets"`
	Retransmits       float64  `json:"retransmits"`
	Timeouts          float64  `json:"timeouts"`
	Drops             float64  `json:"drops"`
	OutOfOrderPercent float64  `json:"out_of_order_percent"` // data packets that arrived behind later ones
	MaxQueueBytes     float64  `json:"max_queue_bytes"`      // of a switch's port
	PacketHops        uint64   `json:"packet_hops"`

	took, perHost []float64 // of all seeds together
}

// result is one without figures.
func (f *File) result(policy string, load float64) Result {
	r := Result{Policy: policy, Topology: f.Topology, Matrix: f.Traffic.Matrix, Sizes: f.sizesName, Seed: uint64(f.Seed), Seeds: f.Seeds}
	if len(f.Traffic.Loads) > 0 {
		r.Load = &load
	}
	return r
}

func (r *Result) summarise(runs []run) {
	var mean, p50, most, last, jobs, goodput, data, again, timeouts, drops, disorder, queue []float64
	p95, p99, p999, job99 := stats.Tail{Percent: 95}, stats.Tail{Percent: 99}, stats.Tail{Percent: 99.9}, stats.Tail{Percent: 99}
	for _, one := range runs {
		r.Flows += len(one.took)
		r.Unfinished += one.unended
		r.Jobs += len(one.jobs)
		r.PacketHops += one.hops
		r.took, r.perHost = append(r.took, one.took...), append(r.perHost, one.perHost...)
		if n := len(one.took); n > 0 {
			mean, p50, most = append(mean, average(one.took)), append(p50, stats.Percentile(one.took, 50)), append(most, one.took[n-1])
			p95.Add(one.took)
			p99.Add(one.took)
			p999.Add(one.took)
		}
		if len(one.jobs) > 0 {
			jobs = append(jobs, average(one.jobs))
			job99.Add(one.jobs)
		}
		last = append(last, ms(one.last))
		goodput = append(goodput, average(one.perHost))
		data, again, timeouts = append(data, one.data), append(again, one.again), append(timeouts, one.timeouts)
		drops, disorder, queue = append(drops, one.drops), append(disorder, one.disorder), append(queue, one.queue)
	}
	if len(mean) > 0 {
		r.MeanMs, r.MeanLowMs, r.MeanHighMs = stats.Median(mean), slices.Min(mean), slices.Max(mean)
	}
	r.P50Ms, r.MaxMs, r.LastMs = stats.Median(p50), stats.Median(most), stats.Median(last)
	r.P95Ms, r.P99Ms, r.P999Ms = p95.Median(), p99.Median(), p999.Median()
	r.JobMeanMs, r.JobP99Ms = stats.MedianOrNil(jobs), job99.Median()
	r.GoodputMeanMbit, r.Goodput95Mbit = stats.Interval95(goodput)
	r.GoodputMbit, r.DataPackets, r.Retransmits = stats.Median(goodput), stats.Median(data), stats.Median(again)
	r.Timeouts, r.Drops, r.OutOfOrderPercent, r.MaxQueueBytes = stats.Median(timeouts), stats.Median(drops), stats.Median(disorder), stats.Median(queue)
}

func average(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
