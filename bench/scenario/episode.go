package scenario

import (
	"fmt"
	"time"

	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/resequencer"
	"weft/stack"
)

// episode is a bulk transfer one of whose paths dies silently: packets go into it
// until the hosts learn of it.
type episode struct {
	Policy     string
	Discipline resequencer.Discipline
	Paths      int           // 4, 9 or 16
	Slow       bool          // links of 20 Mbit/s with queues of 30 ms instead of 10 Gbit/s
	Learn      time.Duration // whole milliseconds from the death of the path until the hosts know
	Seed       uint64
	// Hosts, if not nil, may change the configuration of a host; one that finds
	// out alone need not be told (Learn negative).
	Hosts func(name string, c *stack.Config)
}

// EpisodeResult is the result of an episode. Goodputs are in bits per second.
type EpisodeResult struct {
	Before float64 // in the time before the path died
	During float64 // from then until the hosts knew
	After  float64 // after that, over a time long enough to recover
	// Recovered is the time from the death until goodput is back at (n-1)/n of its former
	// value; 0 if it never fell below that, or stayed below.
	Recovered time.Duration
	Gap       time.Duration // the longest time without a byte

	Retransmits, Timeouts uint64 // TCP's
	// Resequencer counts at the receiver from the death on. Its TimeoutsWait is the time
	// that it added to the repair of losses.
	Resequencer resequencer.Stats
}

// ways is a pair of hosts with a number of paths between them, and a link that
// only one of these takes, on its way down.
type ways struct {
	fabric, from, to, upper, lower string
}

var waysOf = map[int]ways{
	4:  {"fat-tree:k=8", sender, receiver, "a0.5", "e0.1"},
	9:  {"fat-tree:k=6", "h0.0.2", "h1.0.2", "c1.2", "a1.3"},
	16: {"fat-tree:k=8", "h0.0.2", "h1.0.2", "c1.2", "a1.4"},
}

// pace is what an episode is like on links of some rate.
type pace struct {
	links      simnet.Config
	minHold    time.Duration // 0: the default
	tick       time.Duration
	warm, tail time.Duration // before the death, and after it is known
}

func (e episode) pace() pace {
	if e.Slow {
		const packet = 600 * time.Microsecond
		return pace{
			links:   simnet.Config{RateBits: 20e6, Delay: 5 * time.Microsecond, QueueBytes: 75_000},
			minHold: 4 * packet,
			tick:    50 * time.Millisecond, warm: 5 * time.Second, tail: 10 * time.Second,
		}
	}
	p := pace{links: links, tick: time.Millisecond, warm: 40 * time.Millisecond, tail: 200 * time.Millisecond}
	p.links.QueueBytes, p.links.HostQueueBytes = 250_000, 0
	return p
}

// Run runs the episode.
func (e episode) Run() (EpisodeResult, error) {
	x, ok := waysOf[e.Paths]
	if !ok {
		return EpisodeResult{}, fmt.Errorf("scenario: an episode over %d paths; there are fabrics for 4, 9 and 16", e.Paths)
	}
	p := e.pace()
	w := world.New(world.Config{Topology: x.fabric, Links: p.links, Seed: e.Seed, Hosts: func(name string, c *stack.Config) {
		c.Policy = e.Policy
		c.Resequencer.Discipline, c.Resequencer.MinHold = e.Discipline, p.minHold
		if e.Hosts != nil {
			e.Hosts(name, c)
		}
	}})
	defer w.Close()
	f := w.Flow(x.from, x.to, world.Endless)
	m := newMeter(w, p.tick, f)
	known, end := p.warm+max(e.Learn, 0), p.warm+max(e.Learn, 0)+p.tail
	var before, sender stack.Stats
	var atDeath, atKnown int64
	w.At(p.warm, func() {
		before, sender = w.Host(x.to).Stats(), w.Host(x.from).Stats()
		atDeath = f.Received
		w.Cut(x.upper, x.lower)
	})
	w.At(known, func() {
		atKnown = f.Received
		if e.Learn >= 0 {
			w.SetTopology(w.Topology().Without(w.Link(x.upper, x.lower)))
		}
	})
	if err := w.RunUntil(end); err != nil {
		return EpisodeResult{}, fmt.Errorf("episode, seed %d: %w", e.Seed, err)
	}
	r := EpisodeResult{
		Before: m.rate(p.warm/2, p.warm),
		After:  float64(f.Received-atKnown) * 8 / p.tail.Seconds(),
		Gap:    m.longestGap(),
	}
	if e.Learn > 0 {
		r.During = float64(atKnown-atDeath) * 8 / e.Learn.Seconds()
	}
	// A tick holds a whole number of packets, and none need fall on its edge.
	const near = 0.97
	if at, ok := m.recovers(near*r.Before*float64(e.Paths-1)/float64(e.Paths), p.warm); ok {
		r.Recovered = at - p.warm
	}
	now := w.Host(x.from).Stats().TCP
	r.Retransmits, r.Timeouts = now.Retransmits-sender.TCP.Retransmits, now.Timeouts-sender.TCP.Timeouts
	r.Resequencer = since(w.Host(x.to).Stats().Resequencer, before.Resequencer)
	return r, nil
}

// since returns the counters of what holes cost, from one time to another.
func since(now, then resequencer.Stats) resequencer.Stats {
	return resequencer.Stats{
		TimedOut:     now.TimedOut - then.TimedOut,
		Filled:       now.Filled - then.Filled,
		Timeouts:     now.Timeouts - then.Timeouts,
		TimeoutsWait: now.TimeoutsWait - then.TimeoutsWait,
		TimeoutsLate: now.TimeoutsLate - then.TimeoutsLate,
		TimeoutsLoss: now.TimeoutsLoss - then.TimeoutsLoss,
	}
}
