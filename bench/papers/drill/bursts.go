package drill

import (
	"time"

	"weft/bench/papers"
	"weft/bench/sim/workload"
	"weft/topology"
)

// How many flows begin at once, all from hosts of one rack. A Decision replaces one by another one.
const (
	alone   = "each flow begins by itself"
	four    = "4 flows begin at once, from hosts of one rack"
	sixteen = "16 flows begin at once, from hosts of one rack"
	sixty   = "60 flows begin at once, from hosts of one rack"
)

var burstOf = map[string]int{alone: 1, four: 4, sixteen: 16, sixty: 60}

// The trace's times between flows are not public, and its racks have hosts of one service, which
// answer the same requests. So arrivals may be burstier than Poisson's, rack by rack: then uplinks
// of the senders' racks wait, and those down, where traffic of many racks meets, less.
const untilThree = "from one flow to three of each of the 20 hosts of a rack"

var (
	byBursts = papers.Decision{
		Parameter: "flows that begin at once in a rack", About: all, Ends: untilThree,
		Values: []papers.DecisionValue{as(alone, four), as(alone, sixteen), as(alone, sixty)},
	}
	// byBurstsOfAll is of traffic between any hosts, without the part of the leaves that was fitted to
	// where ECMP's packets wait.
	byBurstsOfAll = papers.Decision{
		Parameter: "flows that begin at once in a rack, if all leaves send", About: all, Against: whereTheyWait,
		Values: []papers.DecisionValue{burstsOfAll(four), burstsOfAll(sixteen), burstsOfAll(sixty)},
	}
)

func burstsOfAll(bursts string) papers.DecisionValue {
	return fitted(papers.DecisionValue{Name: bursts, Replace: map[string]string{alone: bursts, quarter: anyToAny}})
}

// bursts is a Source of so many flows at once, each time of one rack.
type bursts struct {
	times workload.Source // Poisson: its senders are one host of each rack
	flows map[topology.NodeID]workload.Source
	n     int
	left  int             // of the burst
	rack  topology.NodeID // its host in times
	at    time.Duration
}

// newBursts has a Poisson process of c's flows come n at a time.
func newBursts(t *topology.Topology, c workload.PoissonConfig, n int) (*bursts, error) {
	b := &bursts{flows: make(map[topology.NodeID]workload.Source), n: n}
	times := c
	times.Senders, times.PerSecond = nil, c.PerSecond/float64(n)
	rackOf := make(map[topology.NodeID][]topology.NodeID)
	first := make(map[topology.NodeID]topology.NodeID) // host of a rack, by its leaf
	for _, host := range c.Senders {
		leaf := t.EdgeOf(host)
		if _, ok := first[leaf]; !ok {
			first[leaf] = host
			times.Senders = append(times.Senders, host)
		}
		rackOf[first[leaf]] = append(rackOf[first[leaf]], host)
	}
	for i, host := range times.Senders {
		own := c
		own.Senders, own.Until, own.Seed = rackOf[host], 0, c.Seed*1000+uint64(i)+1
		s, err := workload.NewPoisson(own)
		if err != nil {
			return nil, err
		}
		b.flows[host] = s
	}
	var err error
	b.times, err = workload.NewPoisson(times)
	return b, err
}

// Next is Source's.
func (b *bursts) Next() (workload.Flow, bool) {
	if b.left == 0 {
		f, ok := b.times.Next()
		if !ok {
			return workload.Flow{}, false
		}
		b.left, b.rack, b.at = b.n, f.Src, f.Start
	}
	b.left--
	f, ok := b.flows[b.rack].Next()
	f.Start = b.at
	return f, ok
}

// Done is Source's: nothing depends on it.
func (b *bursts) Done(workload.Flow, time.Duration, func(workload.Flow)) {}
