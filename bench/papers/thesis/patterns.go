package thesis

import (
	"fmt"
	"math/rand/v2"

	"weft/bench/sim/fluid"
	"weft/bench/sim/workload"
	"weft/hedera"
	"weft/topology"
)

// pattern returns each host's receiver.
type pattern struct {
	name string
	make func(t *topology.Topology, seed uint64) ([]topology.NodeID, error)
}

func stride(by int) pattern {
	return pattern{name: fmt.Sprintf("stride(%d)", by), make: func(t *topology.Topology, _ uint64) ([]topology.NodeID, error) {
		return workload.Stride(t, by)
	}}
}

func staggered(rackP, podP float64, oneToOne bool) pattern {
	return pattern{name: fmt.Sprintf("staggered(%g, %g)", rackP, podP), make: func(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
		return workload.Staggered(t, rackP, podP, oneToOne, seed)
	}}
}

var randomBijection = pattern{name: "random", make: func(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
	return workload.Permutation(t, workload.Anywhere, seed)
}}

var randomAny = pattern{name: "random, not bijective", make: func(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
	return workload.Random(t, workload.Anywhere, seed)
}}

// interPodIncoming makes the hosts of each pod receive from edge switches of one number
// in other pods. Hosts of one rack send to different host numbers. With two-level tables,
// two flows then share each used link down from a core, and no flows share a link up.
// More flows cannot share a link down, since a core gets only packets for hosts of one
// number (thesis §3.5.2).
var interPodIncoming = incomingWhere("")

// incomingWhere is interPodIncoming where receivers of neighbours are by a rule of receivers.
func incomingWhere(rule string) pattern {
	return pattern{name: "inter-pod incoming", make: func(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
		return placeAll(t, seed, rule, func(f *fluid.Fabric, order []int) func(src, dst topology.NodeID) bool {
			from := make(map[int]int) // pod: edge switch
			for i, pod := range order {
				from[pod] = i % 2
			}
			return func(src, dst topology.NodeID) bool {
				return f.Pod(src) != f.Pod(dst) && f.Rack(src)%2 == from[f.Pod(dst)]
			}
		}, func(a, b int) bool { return a != b })
	}}
}

// sameIDOutgoing makes the hosts of a rack send to hosts of one number in other pods
// (thesis §3.5.2).
var sameIDOutgoing = outgoingWhere("")

// outgoingWhere is sameIDOutgoing where receivers of neighbours are by a rule of receivers.
func outgoingWhere(rule string) pattern {
	return pattern{name: "same-ID outgoing", make: func(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
		return placeAll(t, seed, rule, func(f *fluid.Fabric, _ []int) func(src, dst topology.NodeID) bool {
			return func(src, dst topology.NodeID) bool { return f.Pod(src) != f.Pod(dst) }
		}, func(a, b int) bool { return a == b })
	}}
}

// sameIDShared is sameIDOutgoing where several hosts may have one receiver.
var sameIDShared = pattern{name: "same-ID outgoing, shared", make: func(t *topology.Topology, seed uint64) ([]topology.NodeID, error) {
	f, err := fluid.NewFabric(t)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0x736861726564))
	to := make([]topology.NodeID, f.Hosts())
	for src := range to {
		id := rng.IntN(2)
		if src%2 == 1 { // as the other one of the rack
			id = int(to[src-1]) % 2
		}
		for {
			to[src] = topology.NodeID(2*rng.IntN(f.Hosts()/2) + id)
			if f.Pod(to[src]) != f.Pod(topology.NodeID(src)) {
				break
			}
		}
	}
	return to, nil
}}

// placeAll draws bijections of a fat-tree of k=4 until each pair may be and the
// host numbers to which rack-mates send may.
func placeAll(t *topology.Topology, seed uint64, rule string, allow func(f *fluid.Fabric, pods []int) func(src, dst topology.NodeID) bool, ids func(a, b int) bool) ([]topology.NodeID, error) {
	f, err := fluid.NewFabric(t)
	if err != nil {
		return nil, err
	}
	if f.Hosts() != 16 {
		return nil, fmt.Errorf("thesis: worst cases are made for 16 hosts, not for %s", t)
	}
	rng := rand.New(rand.NewPCG(seed, 0x706c616365))
	to := make([]topology.NodeID, f.Hosts())
	for {
		r := receivers{f: f, to: to, may: allow(f, rng.Perm(4)), ids: ids}
		if fill(to, rng, r.by(rule), ids) {
			return to, nil
		}
	}
}

// fill gives hosts destinations at random, one rack after the other. False: it has
// come to an end where nothing fits.
func fill(to []topology.NodeID, rng *rand.Rand, may func(src, dst topology.NodeID) bool, ids func(a, b int) bool) bool {
	free := make([]topology.NodeID, len(to))
	for i, h := range rng.Perm(len(to)) {
		free[i] = topology.NodeID(h)
	}
	for src := range to {
		found := false
		for i, dst := range free {
			if !may(topology.NodeID(src), dst) || src%2 == 1 && !ids(int(to[src-1])%2, int(dst)%2) {
				continue
			}
			to[src] = dst
			free = append(free[:i], free[i+1:]...)
			found = true
			break
		}
		if !found {
			return false
		}
	}
	return true
}

// pairs are a pattern's.
func pairs(to []topology.NodeID) []hedera.Pair {
	list := make([]hedera.Pair, len(to))
	for h, dst := range to {
		list[h] = hedera.Pair{Src: topology.NodeID(h), Dst: dst}
	}
	return list
}
