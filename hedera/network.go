package hedera

import "weft/topology"

// Pair is the two ends of a flow.
type Pair struct{ Src, Dst topology.NodeID }

// Use is a part of a flow's traffic at a port. Ports are ends of links, each for the
// direction away from its node.
type Use struct {
	Port  int32
	Share int32 // of Whole
}

// Whole is the Share of all of a flow's traffic.
const Whole = 1 << 16

// Network is what first fit knows of a fabric. It does not change.
type Network interface {
	// Hosts returns how many there are. They have the numbers below.
	Hosts() int
	// Capacity returns the capacities of ports, 0 of dead ones, in Mbit/s. It must not be
	// changed.
	Capacity() []float64
	// HostRate returns the rate of a host's link, in Mbit/s. Demands are parts of it.
	HostRate() float64
	// Paths returns how many paths a pair has, live or not.
	Paths(src, dst topology.NodeID) int
	// AppendRoute appends what a path uses between switches. Hosts' own links are not
	// among it, as there is no choice of these. Within a rack it is nothing.
	AppendRoute(list []Use, src, dst topology.NodeID, path int) []Use
}

// Space is a Network whose destinations have choices. It is what Annealing searches.
type Space interface {
	Network
	Layout() Layout
	// PathBy returns the path from a source to a destination that has a choice.
	PathBy(src, dst topology.NodeID, choice int) int
	// ChoiceOf returns a choice for which PathBy returns that path.
	ChoiceOf(src, dst topology.NodeID, path int) int
}

// Layout is where the hosts are, and what a destination can choose from.
type Layout struct {
	Pods    [][][]topology.NodeID // hosts, by pod and rack; each is in one rack
	Choices int                   // numbers below
	Stride  int                   // choices that share a switch below the top are so many, one after the other
}

// unit is a host's link in whole numbers: sums of these are exact, in whatever order
// things are added and taken away.
const unit = 1 << 32

// units returns the ports' capacities in hosts' links.
func units(n Network) []int64 {
	capacity, host := n.Capacity(), n.HostRate()
	list := make([]int64, len(capacity))
	for i, c := range capacity {
		list[i] = int64(c / host * unit)
	}
	return list
}

// of returns a use's part of an amount.
func (u Use) of(amount int64) int64 {
	if u.Share == Whole {
		return amount
	}
	return amount / Whole * int64(u.Share)
}
