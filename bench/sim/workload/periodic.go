package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weft/topology"
)

// PeriodicConfig describes hosts that begin a flow at regular intervals.
type PeriodicConfig struct {
	Senders []topology.NodeID
	To      Destination
	Sizes   *CDF
	Every   time.Duration
	// From and Until are when flows begin. Each host begins at a random time of
	// the first period. Until 0: for ever.
	From, Until time.Duration
	Class       uint8
	Seed        uint64
}

// Periodic is a Source of mice beside elephants (DRILL §4).
type Periodic struct {
	c    PeriodicConfig
	r    *rand.Rand
	at   []phase // of the coming period, in order of time
	next int
}

type phase struct {
	at   time.Duration
	host topology.NodeID
}

// NewPeriodic returns a Source. An error names the field that is wrong.
func NewPeriodic(c PeriodicConfig) (*Periodic, error) {
	switch {
	case len(c.Senders) == 0:
		return nil, fmt.Errorf("workload: PeriodicConfig.Senders is empty: name the hosts that send")
	case c.To == nil:
		return nil, fmt.Errorf("workload: PeriodicConfig.To is nil: say to whom")
	case c.Sizes == nil:
		return nil, fmt.Errorf("workload: PeriodicConfig.Sizes is nil: LoadCDF or Fixed give one")
	case c.Every <= 0:
		return nil, fmt.Errorf("workload: PeriodicConfig.Every is %v: above 0", c.Every)
	case c.From < 0 || c.Until != 0 && c.Until < c.From:
		return nil, fmt.Errorf("workload: PeriodicConfig.From %v and Until %v: from 0 on, Until later or 0", c.From, c.Until)
	}
	p := &Periodic{c: c, r: newRand(c.Seed)}
	for _, h := range c.Senders {
		p.at = append(p.at, phase{c.From + time.Duration(p.r.Int64N(int64(c.Every))), h})
	}
	slices.SortStableFunc(p.at, func(a, b phase) int { return int(a.at - b.at) })
	return p, nil
}

// Next is Source's.
func (p *Periodic) Next() (Flow, bool) {
	ph := &p.at[p.next]
	if p.c.Until != 0 && ph.at >= p.c.Until {
		return Flow{}, false
	}
	f := Flow{Start: ph.at, Src: ph.host, Dst: p.c.To(ph.host, p.r), Bytes: p.c.Sizes.sample(p.r), Class: p.c.Class}
	ph.at += p.c.Every
	p.next = (p.next + 1) % len(p.at)
	return f, f.Dst >= 0
}

// Done is Source's: nothing depends on it.
func (p *Periodic) Done(Flow, time.Duration, func(Flow)) {}
