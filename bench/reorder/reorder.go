// Package reorder compares buffers that restore the order of received packets, weft's and
// possible substitutes, on the same input.
//
// An input is made once, from a fixed seed, and played to every implementation in batches
// of 64 packets, as a device read returns them. Only the implementation's own calls are
// timed, a batch at a time. Reading the clock costs some 50 ns, below 1 ns a packet, and
// is not subtracted. Between batches the next batch is prepared and the delivered packets
// are checked, so caches and branch predictors are not as warm as in a tight loop. Rounds
// alternate between the implementations, and the median is the result. The garbage
// collector is off meanwhile; allocations are counted separately.
//
// Time is the input's: packets of 1,500 bytes at 10 Gbit/s.
package reorder

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
)

// Options say what to measure.
type Options struct {
	Cases []Case
	Impls []Impl
	Flows []int // of the cases that have many; nil for each case's own
	// Rounds is the number of measured rounds, at least 1. Packets is the number of
	// packets in a round, at least 1, rounded up to whole batches. Their product is at
	// most MaxPackets. A warm-up round comes before.
	Rounds, Packets int
	// Progress is told how much of all is done. May be nil.
	Progress func(done, total int)
}

// Bounds of Options, to limit memory: a million flows take all implementations together
// 1.3 GB, a packet of the input takes 12 bytes.
const (
	MaxFlows   = 4 << 20
	MaxPackets = 32 << 20
)

// Result is the result of one implementation in one case.
type Result struct {
	Case  string `json:"case"`
	Impl  string `json:"impl"`
	Flows int    `json:"flows"`

	NsPerPacket     float64 `json:"ns_per_packet"` // median of the rounds
	NsPerPacketMin  float64 `json:"ns_per_packet_min"`
	NsPerPacketMax  float64 `json:"ns_per_packet_max"`
	AllocsPerPacket float64 `json:"allocs_per_packet"`
	// HeldBytesMax is the most that was held at once, in bytes of IP packets.
	HeldBytesMax int `json:"held_bytes_max"`
	// OutOfOrder is the share of packets delivered behind a later one of their
	// flow.
	OutOfOrder float64 `json:"out_of_order"`
	// DeliveredSegments is the average number of segments in a delivered packet; 1 if
	// nothing merges.
	DeliveredSegments float64 `json:"delivered_segments"`
	// Config names the settings that differ from their defaults.
	Config string `json:"config,omitempty"`
}

// Interval is the time that a packet of the input takes.
const Interval = interval

// Run measures every implementation in every case. It fails if an implementation loses or
// duplicates a packet, or delivers one out of order where it should not.
func Run(ctx context.Context, o Options) ([]Result, error) {
	o.Packets = (o.Packets + batchSize - 1) / batchSize * batchSize
	type job struct {
		c     Case
		flows int
	}
	var jobs []job
	for _, c := range o.Cases {
		flows := c.flows
		if o.Flows != nil && c.many {
			flows = o.Flows
		}
		for _, f := range flows {
			jobs = append(jobs, job{c, f})
		}
	}
	steps := len(o.Impls) * (o.Rounds + 1) // of a job
	var all []Result
	for i, j := range jobs {
		done := i * steps
		r, err := j.c.measure(ctx, o, j.flows, func() {
			done++
			if o.Progress != nil {
				o.Progress(done, len(jobs)*steps)
			}
		})
		if err != nil {
			return nil, err
		}
		all = append(all, r...)
	}
	return all, nil
}

// measure plays one input to all implementations.
func (c Case) measure(ctx context.Context, o Options, flows int, step func()) ([]Result, error) {
	in := c.input(flows, (o.Rounds+1)*o.Packets, rand.New(rand.NewPCG(1, 0)))
	var players []*player
	for _, impl := range o.Impls {
		players = append(players, newPlayer(c, impl, in, flows))
	}
	// each lets everybody in turn play on to a place in the input.
	at := c.known(flows)
	each := func(play func(p *player, to int) error) error {
		at += o.Packets
		for _, p := range players {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err := play(p, at); err != nil {
				return p.failed(err)
			}
			step()
		}
		return nil
	}
	if err := each((*player).warmUp); err != nil {
		return nil, err
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range o.Rounds {
		if err := each((*player).round); err != nil {
			return nil, err
		}
	}
	var results []Result
	for _, p := range players {
		r, err := p.result(o.Rounds * o.Packets)
		if err != nil {
			return nil, p.failed(err)
		}
		results = append(results, r)
	}
	return results, nil
}
