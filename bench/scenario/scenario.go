// Package scenario sends TCP through fabrics with a fault. It runs the real stack over
// four paths in virtual time, so a scenario has the same packets at the same nanoseconds
// in every run.
package scenario

import (
	"fmt"
	"time"

	"weft/bench/named"
	"weft/bench/stats"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/resequencer"
	"weft/stack"
)

// Between two racks of a pod of this fabric there are four paths.
const (
	fabric   = "fat-tree:k=8"
	sender   = "h0.0.2"
	receiver = "h0.1.2"
)

var spines = []string{"a0.4", "a0.5", "a0.6", "a0.7"}

// links are of 10 Gbit/s and 5 µs: a round trip of 40 µs without queues. Queues
// hold a TCP window, since a host's own queue holds back its TCP rather than
// drop; so only the scenario's own losses occur.
var links = simnet.Config{RateBits: 10e9, Delay: 5 * time.Microsecond, QueueBytes: 16 << 20, HostQueueBytes: 16 << 20}

// limit is the virtual time after which a scenario has failed.
const limit = 10 * time.Second

// Scenario is a bulk transfer and the fault of its paths.
type Scenario struct {
	Name       string
	Policy     string
	Discipline resequencer.Discipline
	Bytes      int64 // of the bulk transfer
	Seed       uint64

	Skew    time.Duration // extra delay of one of the four paths
	AckSkew time.Duration // the same on the way back
	Loss    float64       // probability on each path
	// Dies takes one path away after 10 ms. The hosts learn of it 2 ms later.
	Dies bool
	// Mice sends small requests beside three more bulk transfers to the rack.
	Mice bool
}

// Result is the result of a scenario.
type Result struct {
	Scenario
	Goodput     float64 // of the bulk transfer, bits per second; 0 if it did not end in time
	Trace       uint64  // hash of all packets with their times
	Retransmits uint64
	Recoveries  uint64 // times that TCP slowed down for a loss
	Timeouts    uint64 // retransmission timeouts
	Resequencer resequencer.Stats
	// MiceMedian and Mice99 are of the requests' times.
	MiceMedian, Mice99 time.Duration
}

// Run runs the scenario.
func (s Scenario) Run() (Result, error) {
	w := world.New(world.Config{
		Topology: fabric, Links: links, Seed: s.Seed,
		Hosts: func(_ string, c *stack.Config) {
			c.Policy = s.Policy
			c.Resequencer.Discipline = s.Discipline
		},
	})
	defer w.Close()
	for i, spine := range spines {
		down, back := simnet.Impairment{Loss: s.Loss}, simnet.Impairment{}
		if i == 0 {
			down.Delay, back.Delay = s.Skew, s.AckSkew
		}
		w.Impair(spine, "e0.1", down)
		w.Impair(spine, "e0.0", back)
	}
	if s.Dies {
		w.At(10*time.Millisecond, func() { w.Cut(spines[1], "e0.1") })
		w.At(12*time.Millisecond, func() {
			w.SetTopology(w.Topology().Without(w.Link(spines[1], "e0.1")))
		})
	}
	bulk := w.Flow(sender, receiver, s.Bytes)
	var mice *world.Trips
	if s.Mice {
		for _, n := range []string{"3", "4", "5"} {
			w.Flow("h0.0."+n, "h0.1."+n, s.Bytes)
		}
		mice = w.RoundTripsAt(time.Millisecond, "h0.2.2", receiver, 50, 1000, 200*time.Microsecond)
	}
	err := w.Run(limit)
	r := Result{Scenario: s, Trace: w.Trace(), Resequencer: w.Host(receiver).Stats().Resequencer}
	t := w.Host(sender).Stats().TCP
	r.Retransmits, r.Recoveries, r.Timeouts = t.Retransmits, t.FastRecovery, t.Timeouts
	if bulk.End > 0 {
		r.Goodput = bulk.Goodput()
	}
	if mice != nil {
		var ms []float64
		for _, t := range mice.Times {
			ms = append(ms, float64(t))
		}
		r.MiceMedian, r.Mice99 = time.Duration(stats.Percentile(ms, 50)), time.Duration(stats.Percentile(ms, 99))
	}
	if err != nil {
		return r, fmt.Errorf("%s, seed %d: %w", s.Name, s.Seed, err)
	}
	return r, nil
}

// Bulk is how much each of the scenarios sends, in bytes.
const Bulk = 50 << 20

// Skews are those of the table and the plot.
var Skews = []time.Duration{0, 20 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond, 2 * time.Millisecond}

// Losses are those of the table, per packet.
var Losses = []float64{0, 0.0001, 0.001, 0.01}

// disciplineOf is what a receiver would use for a policy.
func disciplineOf(policy string) resequencer.Discipline {
	if policy == "ecmp" {
		return resequencer.Off
	}
	return resequencer.Presto
}

// scenarios are those that are worth running again and again.
func scenarios() []Scenario {
	var all []Scenario
	for _, policy := range []string{"presto", "drb"} {
		add := func(name string, s Scenario) {
			s.Name, s.Policy, s.Discipline = policy+"-"+name, policy, disciplineOf(policy)
			s.Bytes, s.Seed = Bulk, 1
			all = append(all, s)
		}
		for _, skew := range Skews {
			add("skew-"+skew.String(), Scenario{Skew: skew})
		}
		for _, loss := range Losses[1:] {
			add(fmt.Sprintf("loss-%g%%", 100*loss), Scenario{Loss: loss})
		}
		add("skew-100µs-loss-0.1%", Scenario{Skew: 100 * time.Microsecond, Loss: 0.001})
		add("path-dies", Scenario{Dies: true})
		add("acks-reordered", Scenario{AckSkew: 200 * time.Microsecond})
		add("mice", Scenario{Mice: true})
	}
	return all
}

// Names returns the names of all scenarios.
func Names() (names []string) {
	for _, s := range scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// Select returns the scenarios with the given names, all if there are
// none.
func Select(names []string) ([]Scenario, error) {
	all := scenarios()
	if len(names) == 0 {
		return all, nil
	}
	return named.Select("scenario", all, func(s Scenario) string { return s.Name }, names)
}
