package workload

import (
	"fmt"
	"math/rand/v2"

	"weft/topology"
)

// Destination returns the receiver of a host's next flow, drawn from r. A negative number
// means that there are no more.
type Destination func(src topology.NodeID, r *rand.Rand) topology.NodeID

// Uniform draws any host in the permitted places. An error says that there is none.
func Uniform(t *topology.Topology, w Where) (Destination, error) {
	p := placesOf(t)
	if p.near(0, w).len() == p.hosts {
		return nil, fmt.Errorf("workload: in %s no host has a destination in %s", t, w)
	}
	return func(src topology.NodeID, r *rand.Rand) topology.NodeID {
		return draw(span{0, topology.NodeID(p.hosts)}, p.near(src, w), r)
	}, nil
}

// draw returns one of all but those of except, which is part of it.
func draw(all, except span, r *rand.Rand) topology.NodeID {
	d := all.first + topology.NodeID(r.IntN(all.len()-except.len()))
	if d >= except.first {
		d += topology.NodeID(except.len())
	}
	return d
}

// Among draws one of some hosts, which must be others than the senders.
func Among(hosts []topology.NodeID) Destination {
	return func(_ topology.NodeID, r *rand.Rand) topology.NodeID { return hosts[r.IntN(len(hosts))] }
}

// To is each host's only destination, by its number.
func To(to []topology.NodeID) Destination {
	return func(src topology.NodeID, _ *rand.Rand) topology.NodeID { return to[src] }
}

// InTurn makes every host go through all others once, in a random order of its own: a
// shuffle, such as MapReduce's (thesis §4.4.3). It remembers the place of each host, so it
// is for one Source. It takes 4 bytes per pair of hosts.
func InTurn(t *topology.Topology, seed uint64) (Destination, error) {
	to, err := InTurnAmong(t.NumHosts(), seed)
	if err != nil {
		return nil, fmt.Errorf("%w, and this is %s", err, t)
	}
	return to, nil
}

// InTurnAmong is InTurn among so many hosts.
func InTurnAmong(n int, seed uint64) (Destination, error) {
	if n > maxInTurn {
		return nil, fmt.Errorf("workload: %d hosts; an order of all others for each is kept for up to %d", n, maxInTurn)
	}
	left := make([][]topology.NodeID, n)
	r := newRand(seed)
	for h := range left {
		for o := range n {
			if o != h {
				left[h] = append(left[h], topology.NodeID(o))
			}
		}
		shuffle(left[h], r)
	}
	return func(src topology.NodeID, _ *rand.Rand) topology.NodeID {
		l := left[src]
		if len(l) == 0 {
			return -1
		}
		left[src] = l[1:]
		return l[0]
	}, nil
}

// maxInTurn keeps the orders within 64 MB.
const maxInTurn = 4096

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x776f726b6c6f6164)) }

func shuffle(hosts []topology.NodeID, r *rand.Rand) {
	r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
}

// Hosts returns all hosts' numbers.
func Hosts(t *topology.Topology) []topology.NodeID {
	all := make([]topology.NodeID, t.NumHosts())
	for i := range all {
		all[i] = topology.NodeID(i)
	}
	return all
}

// PodOf returns the hosts of the pod of a host, itself included; RackOf those of
// its rack.
func PodOf(t *topology.Topology, host topology.NodeID) []topology.NodeID {
	return placesOf(t).pod[host].hosts()
}

// RackOf returns the hosts of a host's edge switch, itself included.
func RackOf(t *topology.Topology, host topology.NodeID) []topology.NodeID {
	return placesOf(t).rack[host].hosts()
}

func (s span) hosts() []topology.NodeID {
	var l []topology.NodeID
	for h := s.first; h < s.end; h++ {
		l = append(l, h)
	}
	return l
}
