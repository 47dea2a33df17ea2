package balance

import (
	"fmt"

	"weft/drb"
)

// MaxSteps is how many next hops a set has at most, and how finely weights are told apart.
const MaxSteps = 128

// Hop is a next hop of a route that is in use.
type Hop struct {
	Port   uint32 // interface index
	Weight uint32 // of the kernel's route, from 1 to 256
	Group  uint32 // hops of one group are symmetric (DRILL §3.4); all of 0 where that is not known
}

// MaxGroups is how many groups of a set have a memory of their own.
const MaxGroups = 8

// Set is the next hops of a route in the order in which turns visit them, each as often as
// its weight says. It is struct set of fabric/bpf/balance.c.
type Set struct {
	N      uint32 // steps, 0 or from 2 on
	Groups uint32 // of hops
	Steps  [MaxSteps]Step
}

// Step is a next hop, and a packet's hash by which the kernel chooses it. The steps of a
// group follow each other, and each knows where they are.
type Step struct {
	Port  uint32 // interface index
	Hash  uint32
	First uint8 // step of the group
	Count uint8 // of the group's steps
	Group uint8 // its number, modulo MaxGroups
	_     uint8
}

// NewSet returns the set of hops, in the order of the kernel's route, without those that are
// dead. With fewer than two there is nothing to choose, and the set is empty.
//
// The kernel compares half of the hash with an upper bound for each hop, in proportion to
// the weights of those that live (Linux, net/ipv4/fib_semantics.c, fib_rebalance and
// fib_select_multipath). A step's hash is in the middle between its hop's bounds. So a hop
// that has just died, of which the set does not know yet, moves its packets to another one.
func NewSet(hops []Hop) (s Set, err error) {
	if len(hops) > MaxSteps {
		return s, fmt.Errorf("%d next hops, at most %d can be balanced over", len(hops), MaxSteps)
	}
	if len(hops) < 2 {
		return s, nil
	}
	hashes, steps := middles(hops), stepsOf(hops)
	for _, group := range groupsOf(hops) {
		order := visits(group, steps)
		for i, hop := range order {
			s.Steps[int(s.N)+i] = Step{Port: hops[hop].Port, Hash: hashes[hop], First: uint8(s.N), Count: uint8(len(order)), Group: uint8(s.Groups % MaxGroups)}
		}
		s.N += uint32(len(order))
		s.Groups++
	}
	return s, nil
}

// groupsOf are the numbers of hops by group, in the order of the groups' first hops.
func groupsOf(hops []Hop) (groups [][]int) {
	at := make(map[uint32]int)
	for i, h := range hops {
		n, ok := at[h.Group]
		if !ok {
			n = len(groups)
			at[h.Group], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// middles are the hashes in the middle of the hops' ranges.
func middles(hops []Hop) []uint32 {
	var total, sum uint64
	for _, h := range hops {
		total += uint64(h.Weight)
	}
	list := make([]uint32, len(hops))
	var from uint64
	for i, h := range hops {
		sum += uint64(h.Weight)
		to := (sum<<31 + total/2) / total
		list[i] = uint32(from + to - 1) // twice the middle of from and to-1
		from = to
	}
	return list
}

// visits are the numbers of hops in turn, spread as evenly as whole steps allow.
func visits(hops, steps []int) []int {
	var live []int
	for _, hop := range hops {
		for range steps[hop] {
			live = append(live, hop)
		}
	}
	return drb.RoundRobin.Order(nil, live)
}

// stepsOf are how many steps each hop has.
func stepsOf(hops []Hop) []int {
	var common, total uint64
	for _, h := range hops {
		common = gcd(common, uint64(h.Weight))
		total += uint64(h.Weight)
	}
	list := make([]int, len(hops))
	for i, h := range hops {
		n := uint64(h.Weight) / common
		if total/common > MaxSteps { // round, so that each has a step
			n = 1 + uint64(h.Weight)*uint64(MaxSteps-len(hops))/total
		}
		list[i] = int(n)
	}
	return list
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
