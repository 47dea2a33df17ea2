package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"weft/topology"
)

// Permutation is a random permutation of the hosts, by the sender's number: each sends to
// one and receives from one, in the permitted places (DRB §5.1; DRILL's bijection).
func Permutation(t *topology.Topology, w Where, seed uint64) ([]topology.NodeID, error) {
	p := placesOf(t)
	if p.near(0, w).len() == p.hosts {
		return nil, fmt.Errorf("workload: in %s no host has a destination in %s", t, w)
	}
	r, to := newRand(seed), Hosts(t)
	shuffle(to, r)
	tooNear := func(src int, dst topology.NodeID) bool {
		s := p.near(topology.NodeID(src), w)
		return dst >= s.first && dst < s.end
	}
	// Who got somebody too near changes with a sender that is elsewhere and has
	// somebody elsewhere; as racks and pods are of one size, there is one.
	for h := range to {
		for tooNear(h, to[h]) {
			o := r.IntN(len(to))
			if !tooNear(h, to[o]) && !tooNear(o, to[h]) {
				to[h], to[o] = to[o], to[h]
			}
		}
	}
	return to, nil
}

// Stride is the thesis' stride pattern (§3.5.2): host x sends to host x+by, modulo the
// number of hosts.
func Stride(t *topology.Topology, by int) ([]topology.NodeID, error) {
	return StrideAmong(t.NumHosts(), by)
}

// StrideAmong is Stride among so many hosts.
func StrideAmong(n, by int) ([]topology.NodeID, error) {
	if by < 0 || by%n == 0 {
		return nil, fmt.Errorf("workload: a stride of %d is none among %d hosts", by, n)
	}
	to := make([]topology.NodeID, n)
	for h := range to {
		to[h] = topology.NodeID((h + by) % n)
	}
	return to, nil
}

// Random gives every host a destination of its own choice; some receive from
// several, some from none (thesis §4.4.1).
func Random(t *topology.Topology, w Where, seed uint64) ([]topology.NodeID, error) {
	d, err := Uniform(t, w)
	if err != nil {
		return nil, err
	}
	r, to := newRand(seed), make([]topology.NodeID, t.NumHosts())
	for h := range to {
		to[h] = d(topology.NodeID(h), r)
	}
	return to, nil
}

// Staggered gives every host a destination in its rack with probability rackP, in another
// rack of its pod with podP, in another pod otherwise (thesis §3.5.2, §4.4.1). If there
// is no destination left there, it looks further out, then further in. With oneToOne no
// two hosts have the same destination (thesis §3.5.2), so the last hosts must take what
// is left.
func Staggered(t *topology.Topology, rackP, podP float64, oneToOne bool, seed uint64) ([]topology.NodeID, error) {
	if !(rackP >= 0 && podP >= 0 && rackP+podP <= 1) {
		return nil, fmt.Errorf("workload: probabilities %v and %v of a rack and a pod: not below 0, nor above 1 together", rackP, podP)
	}
	p := placesOf(t)
	if p.hosts < 2 {
		return nil, fmt.Errorf("workload: %s has one host", t)
	}
	r, to, order := newRand(seed), make([]topology.NodeID, p.hosts), Hosts(t)
	shuffle(order, r)
	free := make([]bool, p.hosts)
	for i := range free {
		free[i] = true
	}
	for i, h := range order {
		self, rack, pod := span{h, h + 1}, p.rack[h], p.pod[h]
		rings := [3][2]span{{rack, self}, {pod, rack}, {{0, topology.NodeID(p.hosts)}, pod}}
		first := 2
		if u := r.Float64(); u < rackP {
			first = 0
		} else if u < rackP+podP {
			first = 1
		}
		found := topology.NodeID(-1)
		for _, ring := range append(slices.Clone(rings[first:]), rings[:first]...) {
			if found = pick(ring[0], ring[1], free, r.IntN(p.hosts)); found >= 0 {
				break
			}
		}
		if found < 0 {
			// Only the last one can be left with itself: it changes with another.
			o := order[r.IntN(i)]
			found, to[o] = to[o], h
		}
		to[h] = found
		free[found] = !oneToOne
	}
	return to, nil
}

// pick returns a free host of all but except, the from-th of them on, or -1.
func pick(all, except span, free []bool, from int) topology.NodeID {
	n := all.len() - except.len()
	for i := range n {
		d := all.first + topology.NodeID((from+i)%n)
		if d >= except.first {
			d += topology.NodeID(except.len())
		}
		if free[d] {
			return d
		}
	}
	return -1
}

// Cycle is a random permutation in one cycle: each host sends to another one and receives from
// one. It asks nothing of where hosts are. order is the cycle, to is by the sender's number.
func Cycle(hosts int, seed uint64) (order, to []topology.NodeID) {
	order, to = make([]topology.NodeID, hosts), make([]topology.NodeID, hosts)
	for i, h := range rand.New(rand.NewPCG(seed, 0)).Perm(hosts) {
		order[i] = topology.NodeID(h)
	}
	for i, h := range order {
		to[h] = order[(i+1)%hosts]
	}
	return order, to
}
