package aqm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// REDConfig is Random Early Detection (Floyd and Jacobson 1993; thesis §5.3.1).
type REDConfig struct {
	Queue VirtualQueue
	// Below Min bytes of average no packet is chosen; from there the probability rises to
	// MaxP at Max, and from Max on all are dropped.
	Min, Max int
	MaxP     float64
	Weight   float64 // w_q: of what a packet finds, in the average
	Mark     bool    // chosen packets that are capable are marked, not dropped
	Seed     uint64
}

// RED is a Discipline.
type RED struct {
	c       REDConfig
	rng     *rand.Rand
	queue   VirtualQueue
	average float64
	since   int // packets since the last chosen one; -1: the average was below Min
}

// packetBytes are what an average falls by one step for, while the queue is empty.
const packetBytes = 1500

// NewRED returns a RED before its first packet. An error names the field that is wrong.
func NewRED(c REDConfig) (*RED, error) {
	if err := c.Queue.Check(); err != nil {
		return nil, err
	}
	switch {
	case c.Min <= 0 || c.Max <= c.Min:
		return nil, fmt.Errorf("aqm: REDConfig.Min is %d and Max %d; want more than 0, and Max more than Min", c.Min, c.Max)
	case !(c.MaxP > 0 && c.MaxP <= 1):
		return nil, fmt.Errorf("aqm: REDConfig.MaxP is %v; want more than 0, at most 1", c.MaxP)
	case !(c.Weight > 0 && c.Weight <= 1):
		return nil, fmt.Errorf("aqm: REDConfig.Weight is %v; want more than 0, at most 1", c.Weight)
	}
	return &RED{c: c, queue: c.Queue, since: -1, rng: rand.New(rand.NewPCG(c.Seed, 0x726564))}, nil
}

// Arrive is Discipline's.
func (r *RED) Arrive(a Arrival) Verdict {
	found, fits := r.queue.Put(a.Now, a.Bytes)
	if found > 0 {
		r.average += (found - r.average) * r.c.Weight
	} else {
		r.rest(r.queue.empty)
	}
	v := r.choose(a.Capable)
	if v == Drop && fits {
		r.queue.take(a.Bytes)
	}
	return v
}

// rest lets the average fall for the time that the queue was empty, a step for each packet
// that could have been sent. It is in place of the step of the packet that ends that time
// (Floyd and Jacobson 1993, Fig. 2).
func (r *RED) rest(empty time.Duration) {
	packets := float64(empty) * r.c.Queue.RateMbit / (8e3 * packetBytes)
	r.average *= math.Pow(1-r.c.Weight, packets)
}

// choose is by the average. Chosen packets are spread evenly: the more have passed since the
// last one, the likelier the next is.
func (r *RED) choose(capable bool) Verdict {
	low, high := float64(r.c.Min), float64(r.c.Max)
	switch {
	case r.average < low:
		r.since = -1
		return Pass
	case r.average >= high:
		r.since = 0
		return Drop
	}
	r.since++
	p := r.c.MaxP * (r.average - low) / (high - low)
	if spread := float64(r.since) * p; spread < 1 && r.rng.Float64() >= p/(1-spread) {
		return Pass
	}
	r.since = 0
	if r.c.Mark && capable {
		return Mark
	}
	return Drop
}
