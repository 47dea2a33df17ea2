package thesis

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/aqm"
	"weft/topology"
)

// What follows is of virtual queues that are not where the queue is (thesis §5.5.2): packets
// that a simulation has sent to a port are sent again, through bumps in front of it that take
// their time, and the queues that the bumps estimate are compared with the port's.

// passing is a packet that passes a bump.
type passing struct {
	at    time.Duration
	bytes int
	flow  uint64
}

// recorder is a Discipline that keeps data packets of some senders.
type recorder struct {
	senders int // those before
	list    []passing
}

// Arrive is aqm.Discipline's.
func (r *recorder) Arrive(a aqm.Arrival) aqm.Verdict {
	if int(a.Flow>>32) < r.senders && a.Bytes > ackBytes {
		r.list = append(r.list, passing{a.Now, a.Bytes, a.Flow})
	}
	return aqm.Pass
}

const ackBytes = 40

// The port of the figures, and the flows that fill it.
const (
	estimateBuffer = 40_000
	estimateHosts  = 2
)

// hostRate is the name of the rate of hosts, by itself 10 Gbit/s.
const hostRate = "rate of a host, Mbit/s"

// recorded is what comes to the port of a rate from so many TCP flows of hosts of a hostRate.
func recorded(o papers.Options, mbit float64, flows int, d time.Duration) (sim.Config, *recorder, error) {
	c, err := testbedConfig(o, fmt.Sprintf("leaf-spine:leaves=2,spines=1,hosts=%d,host-rate=%g,fabric-rate=%g", estimateHosts, valueOf(o, hostRate, 10_000), mbit), d)
	if err != nil {
		return c, nil, err
	}
	r := &recorder{senders: estimateHosts}
	c.Queues[0] = sim.Queue{RateMbit: mbit, Bytes: estimateBuffer, Manage: func(_, place int) aqm.Discipline {
		if place != sim.EdgeUp {
			return nil
		}
		return r
	}}
	senders := int(valueOf(o, "senders", float64(flows)))
	c.Workload, err = elephants(senders, func(i int) topology.NodeID { return topology.NodeID(estimateHosts + i) }, flows, time.Millisecond)
	return c, r, err
}

// bumpQuantiles are those of what a bump takes with a packet, in µs (thesis Table 5.2, with
// affinity: 30 on average, and these). The least makes the average.
var bumpQuantiles = [...]struct{ p, us float64 }{{0, 13.1}, {.95, 42}, {.99, 83}, {.999, 169}, {1, 208}}

// bumpTakes is a quantile.
func bumpTakes(p float64) time.Duration {
	for i, q := range bumpQuantiles[1:] {
		if p <= q.p {
			before := bumpQuantiles[i]
			return time.Duration(1e3 * (before.us + (q.us-before.us)*(p-before.p)/(q.p-before.p)))
		}
	}
	return time.Duration(1e3 * bumpQuantiles[len(bumpQuantiles)-1].us)
}

// forwarded is when packets leave a bump: each takes its time, and none overtakes another. For a time, 0:
// none, a bump takes the same with each.
func forwarded(list []passing, alike time.Duration, seed uint64) []passing {
	rng := rand.New(rand.NewPCG(seed, 0x62756d70))
	behind := make([]passing, len(list))
	last, until, takes := time.Duration(0), time.Duration(-1), bumpTakes(.5)
	for i, p := range list {
		if p.at >= until {
			takes, until = bumpTakes(rng.Float64()), p.at+alike
		}
		p.at = max(last, p.at+takes)
		last = p.at
		behind[i] = p
	}
	return behind
}

// sent is when packets have left a port that comes after: those that it has no room for do
// not.
func sent(list []passing, rateMbit float64, room int) []passing {
	var behind []passing
	q := aqm.VirtualQueue{RateMbit: rateMbit, Room: room}
	for _, p := range list {
		if found, ok := q.Put(p.at, p.bytes); ok {
			p.at += time.Duration((found + float64(p.bytes)) * 8e3 / rateMbit)
			behind = append(behind, p)
		}
	}
	return behind
}

// later delays the packets of one flow, and puts all in order of time again.
func later(list []passing, flow uint64, by time.Duration) []passing {
	list = slices.Clone(list)
	for i := range list {
		if list[i].flow == flow {
			list[i].at += by
		}
	}
	slices.SortStableFunc(list, func(a, b passing) int { return cmp.Compare(a.at, b.at) })
	return list
}

// batched has packets be told of by the last of so many.
func batched(list []passing, n int) []passing {
	list = slices.Clone(list)
	for i := range list {
		list[i].at = list[min(i/n*n+n-1, len(list)-1)].at
	}
	return list
}

// lengths are those of a virtual queue behind each of its packets.
func lengths(list []passing, q aqm.VirtualQueue) []float64 {
	all := make([]float64, len(list))
	for i, p := range list {
		q.Put(p.at, p.bytes)
		all[i] = q.Length(p.at)
	}
	return all
}

// lengthsAt are those of a virtual queue at the times of other packets, which are in order.
func lengthsAt(list []passing, q aqm.VirtualQueue, at []passing) []float64 {
	all := make([]float64, len(at))
	n := 0
	for i, other := range at {
		for ; n < len(list) && list[n].at <= other.at; n++ {
			q.Put(list[n].at, list[n].bytes)
		}
		all[i] = q.Length(other.at)
	}
	return all
}

// apart are the differences of lengths, in bytes, in order.
func apart(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = max(a[i]-b[i], b[i]-a[i])
	}
	slices.Sort(all)
	return all
}

// percentWithin is how many of values in order are at most a bound.
func percentWithin(values []float64, bound float64) float64 {
	n, _ := slices.BinarySearchFunc(values, bound, func(v, bound float64) int {
		if v <= bound {
			return -1
		}
		return 1
	})
	return 100 * float64(n) / float64(max(len(values), 1))
}
