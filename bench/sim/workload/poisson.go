package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"weft/topology"
)

// PoissonConfig describes a Poisson process of flows.
type PoissonConfig struct {
	Senders   []topology.NodeID // each is as likely
	To        Destination
	Sizes     *CDF
	PerSecond float64 // flows of all senders together; see FlowsPerSecond
	// From and Until are when flows begin. Until 0: for ever.
	From, Until time.Duration
	Flows       int // at most; 0: any number
	Class       uint8
	Seed        uint64
}

// Poisson is a Source of flows at random times, independent of earlier flows.
type Poisson struct {
	c     PoissonConfig
	r     *rand.Rand
	at    float64 // seconds since From
	begun int
}

// NewPoisson returns a Source. An error names the field that is wrong.
func NewPoisson(c PoissonConfig) (*Poisson, error) {
	switch {
	case len(c.Senders) == 0:
		return nil, fmt.Errorf("workload: PoissonConfig.Senders is empty: name the hosts that send")
	case c.To == nil:
		return nil, fmt.Errorf("workload: PoissonConfig.To is nil: say to whom")
	case c.Sizes == nil:
		return nil, fmt.Errorf("workload: PoissonConfig.Sizes is nil: LoadCDF or Fixed give one")
	case !(c.PerSecond > 0 && c.PerSecond <= 1e12):
		return nil, fmt.Errorf("workload: PoissonConfig.PerSecond is %v: above 0, at most 1e12", c.PerSecond)
	case c.From < 0 || c.Until != 0 && c.Until < c.From:
		return nil, fmt.Errorf("workload: PoissonConfig.From %v and Until %v: from 0 on, Until later or 0", c.From, c.Until)
	case c.Flows < 0:
		return nil, fmt.Errorf("workload: PoissonConfig.Flows is %d: 0 or more", c.Flows)
	}
	return &Poisson{c: c, r: newRand(c.Seed)}, nil
}

// Next is Source's.
func (p *Poisson) Next() (Flow, bool) {
	p.at += p.r.ExpFloat64() / p.c.PerSecond
	start := p.c.From + time.Duration(p.at*float64(time.Second))
	if p.c.Until != 0 && start >= p.c.Until || p.c.Flows != 0 && p.begun == p.c.Flows {
		return Flow{}, false
	}
	src := p.c.Senders[p.r.IntN(len(p.c.Senders))]
	dst := p.c.To(src, p.r)
	if dst < 0 {
		return Flow{}, false
	}
	p.begun++
	return Flow{Start: start, Src: src, Dst: dst, Bytes: p.c.Sizes.sample(p.r), Class: p.c.Class}, true
}

// Done is Source's: nothing depends on it.
func (p *Poisson) Done(Flow, time.Duration, func(Flow)) {}
