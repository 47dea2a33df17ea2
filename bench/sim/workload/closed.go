package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weft/topology"
)

// ClosedConfig describes hosts that begin a flow when the one before has ended.
type ClosedConfig struct {
	Senders []topology.NodeID
	To      Destination
	Sizes   *CDF // nil: flows never end
	// AtOnce is how many flows a host has under way; 0: one.
	AtOnce int
	// Rounds is the number of flows that a host begins in each of its AtOnce turns; 0:
	// until To has no more destinations.
	Rounds int
	// Hosts begin at Start, each at a random time up to Spread later.
	Start, Spread time.Duration
	Class         uint8
	Seed          uint64
}

// Closed is a Source with a closed loop. With Rounds 1 it is bulk transfers that all
// begin at once (permutation, stride), with InTurn a shuffle.
type Closed struct {
	c     ClosedConfig
	r     *rand.Rand
	first []Flow // those to begin by themselves, in order
	left  []int  // rounds, by what Flow.Job says
}

// NewClosed returns a Source. An error names the field that is wrong.
func NewClosed(c ClosedConfig) (*Closed, error) {
	switch {
	case len(c.Senders) == 0:
		return nil, fmt.Errorf("workload: ClosedConfig.Senders is empty: name the hosts that send")
	case c.To == nil:
		return nil, fmt.Errorf("workload: ClosedConfig.To is nil: say to whom")
	case c.AtOnce < 0 || c.AtOnce*len(c.Senders) > maxClosed:
		return nil, fmt.Errorf("workload: ClosedConfig.AtOnce is %d: 0 or more, and at most %d flows at once", c.AtOnce, maxClosed)
	case c.Rounds < 0:
		return nil, fmt.Errorf("workload: ClosedConfig.Rounds is %d: 0 or more", c.Rounds)
	case c.Start < 0 || c.Spread < 0:
		return nil, fmt.Errorf("workload: ClosedConfig.Start %v and Spread %v: 0 or later", c.Start, c.Spread)
	}
	s := &Closed{c: c, r: newRand(c.Seed)}
	for _, h := range c.Senders {
		at := c.Start
		if c.Spread > 0 {
			at += time.Duration(s.r.Int64N(int64(c.Spread)))
		}
		for range max(1, c.AtOnce) {
			if f, ok := s.flow(h, uint32(len(s.left)), at); ok {
				s.first = append(s.first, f)
				s.left = append(s.left, c.Rounds-1)
			}
		}
	}
	slices.SortStableFunc(s.first, func(a, b Flow) int { return int(a.Start - b.Start) })
	return s, nil
}

// maxClosed is the most flows at once.
const maxClosed = 1 << 24

func (s *Closed) flow(src topology.NodeID, turn uint32, at time.Duration) (Flow, bool) {
	f := Flow{Start: at, Src: src, Dst: s.c.To(src, s.r), Class: s.c.Class, Job: turn}
	if s.c.Sizes != nil {
		f.Bytes = s.c.Sizes.sample(s.r)
	}
	return f, f.Dst >= 0
}

// Next is Source's.
func (s *Closed) Next() (Flow, bool) {
	if len(s.first) == 0 {
		return Flow{}, false
	}
	f := s.first[0]
	s.first = s.first[1:]
	return f, true
}

// Done is Source's: the turn's next flow begins at once.
func (s *Closed) Done(f Flow, at time.Duration, begin func(Flow)) {
	if s.left[f.Job] == 0 {
		return
	}
	s.left[f.Job]--
	if next, ok := s.flow(f.Src, f.Job, at); ok {
		begin(next)
	}
}
