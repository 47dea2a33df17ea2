package workload

import (
	"fmt"
	"slices"
	"time"

	"weft/topology"
)

// IncastConfig describes jobs in which a client asks servers for their parts of a file, and
// all answer at once (Luopan §4.5, CONGA §5.3, DRILL §4). The requests themselves are not
// sent.
type IncastConfig struct {
	Hosts   []topology.NodeID // who may be a client or a server
	Servers int               // of a job, all others than its client
	Bytes   int64             // of the file; each server has Bytes/Servers, the last the rest
	// Jobs is how many there are, at random times from From to Until.
	Jobs        int
	From, Until time.Duration
	// Together is how many jobs, of different clients, begin at the same time; 0: one.
	Together int
	Class    uint8
	Seed     uint64
}

// Incast is a Source. Flow.Job is the number of the job; Jobs tells when it ends.
type Incast struct{ flows []Flow }

// NewIncast returns a Source. An error names the field that is wrong.
func NewIncast(c IncastConfig) (*Incast, error) {
	together := max(1, c.Together)
	switch {
	case c.Servers < 1 || c.Servers >= len(c.Hosts):
		return nil, fmt.Errorf("workload: IncastConfig.Servers is %d: 1 or more, less than the %d hosts", c.Servers, len(c.Hosts))
	case c.Bytes < int64(c.Servers):
		return nil, fmt.Errorf("workload: IncastConfig.Bytes is %d: a byte per server at least", c.Bytes)
	case c.Jobs < 1 || c.Jobs*c.Servers > maxIncast:
		return nil, fmt.Errorf("workload: IncastConfig.Jobs is %d: 1 or more, and at most %d flows", c.Jobs, maxIncast)
	case c.From < 0 || c.Until <= c.From:
		return nil, fmt.Errorf("workload: IncastConfig.From %v and Until %v: from 0 on, Until later", c.From, c.Until)
	case together > len(c.Hosts):
		return nil, fmt.Errorf("workload: IncastConfig.Together is %d: at most the %d hosts", c.Together, len(c.Hosts))
	}
	r := newRand(c.Seed)
	times := make([]time.Duration, (c.Jobs+together-1)/together)
	for i := range times {
		times[i] = c.From + time.Duration(r.Int64N(int64(c.Until-c.From)))
	}
	slices.Sort(times)
	clients, servers := slices.Clone(c.Hosts), slices.Clone(c.Hosts)
	part := c.Bytes / int64(c.Servers)
	s := &Incast{flows: make([]Flow, 0, c.Jobs*c.Servers)}
	for job := range c.Jobs {
		if job%together == 0 {
			shuffle(clients, r)
		}
		client := clients[job%together]
		for i := range c.Servers {
			// The first Servers of a random order, the client left out.
			j := i + r.IntN(len(servers)-i)
			if servers[j] == client {
				last := len(servers) - 1
				servers[j], servers[last] = servers[last], servers[j]
				j = i + r.IntN(last-i)
			}
			servers[i], servers[j] = servers[j], servers[i]
			f := Flow{Start: times[job/together], Src: servers[i], Dst: client, Bytes: part, Class: c.Class, Job: uint32(job)}
			if i == c.Servers-1 {
				f.Bytes = c.Bytes - part*int64(c.Servers-1)
			}
			s.flows = append(s.flows, f)
		}
	}
	return s, nil
}

// maxIncast keeps the flows within 160 MB.
const maxIncast = 1 << 22

// Next is Source's.
func (s *Incast) Next() (Flow, bool) {
	if len(s.flows) == 0 {
		return Flow{}, false
	}
	f := s.flows[0]
	s.flows = s.flows[1:]
	return f, true
}

// Done is Source's: nothing depends on it.
func (s *Incast) Done(Flow, time.Duration, func(Flow)) {}

// Jobs detects when jobs end. See NewJobs.
type Jobs []jobState

type jobState struct {
	left    int
	longest time.Duration
}

// NewJobs returns the Jobs of an Incast: jobs of so many flows each, with numbers below
// jobs.
func NewJobs(jobs, flows int) Jobs {
	j := make(Jobs, jobs)
	for i := range j {
		j[i].left = flows
	}
	return j
}

// Ended takes each flow that has ended, and how long it took. For the last flow of a job
// it returns how long the job took, and true. All flows of a job begin together.
func (j Jobs) Ended(f Flow, took time.Duration) (time.Duration, bool) {
	job := &j[f.Job]
	job.left--
	job.longest = max(job.longest, took)
	return job.longest, job.left == 0
}
