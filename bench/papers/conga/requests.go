package conga

import (
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// requests is a Source: a client asks servers for their parts of a file, all at once, and asks
// again when all have come (§5.3). A request is on its way for a time.
type requests struct {
	client  topology.NodeID
	servers []topology.NodeID
	bytes   int64 // of the file
	jobs    int   // that are to come
	way     time.Duration

	begun int // parts of the first job
	open  int // parts under way
	ended time.Duration
	files int // that have come
}

func (r *requests) part(i int, at time.Duration) workload.Flow {
	n := int64(len(r.servers))
	f := workload.Flow{Start: at + r.way, Src: r.servers[i], Dst: r.client, Bytes: r.bytes / n}
	if i == len(r.servers)-1 {
		f.Bytes = r.bytes - r.bytes/n*(n-1)
	}
	return f
}

func (r *requests) Next() (workload.Flow, bool) {
	if r.begun == len(r.servers) {
		return workload.Flow{}, false
	}
	r.begun++
	r.open++
	return r.part(r.begun-1, 0), true
}

func (r *requests) Done(_ workload.Flow, at time.Duration, begin func(workload.Flow)) {
	if r.open--; r.open > 0 || r.begun < len(r.servers) {
		return
	}
	r.ended = at
	r.files++
	if r.files == r.jobs {
		return
	}
	r.open = len(r.servers)
	for i := range r.servers {
		begin(r.part(i, at))
	}
}

// percent is the throughput of what has come, of the client's link. What has not come by the
// end counts as time, not as bytes.
func (r *requests) percent(end time.Duration, mbit float64) float64 {
	took := r.ended
	if r.files < r.jobs {
		took = end
	}
	return 100 * float64(r.files) * float64(r.bytes) * 8 / 1e6 / took.Seconds() / mbit
}
