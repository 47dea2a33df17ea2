package simfile

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"weft/bench/sim/workload"
	"weft/topology"
	"weft/topology/graph"
)

// fabric is computed or a graph: one of both is nil.
type fabric struct {
	computed *topology.Topology
	graph    *graph.Graph
}

func (f fabric) hosts() int {
	if f.graph != nil {
		return f.graph.NumHosts()
	}
	return f.computed.NumHosts()
}

// host finds a host by its name.
func (f fabric) host(name string) (topology.NodeID, error) {
	if f.graph != nil {
		id, ok := f.graph.ByName(name)
		if !ok || int(id) >= f.graph.NumHosts() {
			return 0, fmt.Errorf("%q: the fabric has no such host; write one, from %s to %s", name, f.graph.Node(0).Name, f.graph.Node(graph.NodeID(f.hosts()-1)).Name)
		}
		return topology.NodeID(id), nil
	}
	n, err := f.computed.Lookup(name)
	if err != nil || n.Layer != topology.LayerHost {
		return 0, fmt.Errorf("%q: the fabric has no such host; write one, from %s to %s", name, f.computed.Node(0).Name, f.computed.Node(topology.NodeID(f.hosts()-1)).Name)
	}
	return n.ID, nil
}

// needsRates names the first link without a rate, if there is one.
func (f fabric) needsRates() error {
	if f.graph != nil {
		for l := range graph.LinkID(f.graph.NumLinks()) {
			if link := f.graph.Link(l); link.Rate <= 0 {
				return fmt.Errorf("the link %s to %s has no rate; give all links a rate", link.Ends[0], link.Ends[1])
			}
		}
		return nil
	}
	for l := range f.computed.Links() {
		if f.computed.Rate(l.ID) == 0 {
			return fmt.Errorf("the link %s has no rate; give all links one, such as leaf-spine:leaves=4,spines=4,hosts=4,host-rate=1000,fabric-rate=1000, in Mbit/s", f.computed.LinkName(l.ID))
		}
	}
	return nil
}

// mbit is the rate at which all hosts together can send out of their racks.
func (f fabric) mbit() (sum float64) {
	if f.graph == nil {
		return workload.FabricMbit(f.computed)
	}
	first, end := f.graph.Tier(1)
	for edge := first; edge < end; edge++ {
		var down, up float64
		for _, p := range f.graph.Down(edge) {
			down += f.graph.Link(p.Link).Rate
		}
		for _, p := range f.graph.Up(edge) {
			up += f.graph.Link(p.Link).Rate
		}
		sum += min(down, up)
	}
	return sum
}

// all are the hosts' numbers.
func (f fabric) all() []topology.NodeID {
	list := make([]topology.NodeID, f.hosts())
	for i := range list {
		list[i] = topology.NodeID(i)
	}
	return list
}

// anywhere draws any host but the sender.
func (f fabric) anywhere() workload.Destination {
	n := f.hosts()
	return func(src topology.NodeID, r *rand.Rand) topology.NodeID {
		dst := topology.NodeID(r.IntN(n - 1))
		if dst >= src {
			dst++
		}
		return dst
	}
}

// otherRack draws a host that has no edge switch in common with the sender.
func (f fabric) otherRack() (workload.Destination, error) {
	if f.graph == nil {
		return workload.Uniform(f.computed, workload.OtherRack)
	}
	n := f.hosts()
	edges := make([][]graph.NodeID, n)
	for h := range edges {
		edges[h] = f.graph.Edges(graph.NodeID(h))
	}
	near := func(a, b int) bool {
		return slices.ContainsFunc(edges[a], func(e graph.NodeID) bool { return slices.Contains(edges[b], e) })
	}
	for a := range n {
		b := 0
		for b < n && near(a, b) {
			b++
		}
		if b == n {
			return nil, fmt.Errorf("no host is in another rack than %s", f.graph.Node(graph.NodeID(a)).Name)
		}
	}
	return func(src topology.NodeID, r *rand.Rand) topology.NodeID {
		for {
			if dst := r.IntN(n); !near(int(src), dst) {
				return topology.NodeID(dst)
			}
		}
	}, nil
}

// ofHost reports whether a port of the simulator's is a host's own.
func (f fabric) ofHost(port int) bool {
	if port%2 == 1 {
		return false // it leads down
	}
	if f.graph == nil {
		return port/2 < f.computed.NumHosts()
	}
	low, _ := f.graph.Ends(graph.LinkID(port / 2))
	return int(low) < f.graph.NumHosts()
}
