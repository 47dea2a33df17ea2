package fluid

import (
	"fmt"

	"weft/topology"
)

// maxHops is how many ports a route has at most: three switches up, two down.
const maxHops = 6

// Direct is the path of a pair that has no choice: from the source's port to
// that of the destination's switch. Between racks it stands for a switch that
// never blocks, of which all hosts are neighbours.
const Direct = -1

// Route is the ports that a flow passes, in their order. Port 2·l is the lower
// end of link l, 2·l+1 the upper one.
type Route struct {
	ports [maxHops]int32
	n     int8
}

// list returns the route's ports.
func (r *Route) list() []int32 { return r.ports[:r.n] }

func routeOf(ports ...int32) Route {
	r := Route{n: int8(len(ports))}
	copy(r.ports[:], ports)
	return r
}

// Fabric is the directed links of a topology, and where its paths lead. It does
// not change.
type Fabric struct {
	capacity []float64 // of ports, Mbit/s
	hosts    int
	edges    []edge  // by host's edge switch
	rack     []int32 // of hosts
	pods     int
	aggLinks []int32 // the first link up of an aggregation switch, pod after pod
	aggs     int     // per pod
	cores    int     // per group; 0: there are none
	spread   bool    // the ports up from a switch are one
}

type edge struct {
	pod  int32
	link int32 // the first one up
}

// NewFabric returns the ports of a topology, all links of which need rates.
func NewFabric(t *topology.Topology) (*Fabric, error) {
	f := &Fabric{hosts: t.NumHosts(), capacity: make([]float64, 2*t.NumLinks()), rack: make([]int32, t.NumHosts())}
	for l := range t.Links() {
		rate := t.Rate(l.ID)
		switch {
		case rate == 0:
			return nil, fmt.Errorf("fluid: link %s of %s has no rate: give host-rate, fabric-rate and core-rate", t.LinkName(l.ID), t)
		case !t.Live(l.ID):
			rate = 0
		}
		f.capacity[2*l.ID], f.capacity[2*l.ID+1] = rate, rate
	}
	f.place(t)
	return f, nil
}

// place learns where the links of switches are.
func (f *Fabric) place(t *topology.Topology) {
	number := make(map[topology.NodeID]int32) // of edge switches
	pods := make(map[topology.NodeID]int32)   // by their first aggregation switch
	for node := range t.Nodes() {
		switch node.Layer {
		case topology.LayerEdge:
			up := upPorts(t, node.ID)
			pod, ok := pods[up[0].Peer]
			if !ok {
				pod = int32(len(pods))
				pods[up[0].Peer] = pod
			}
			number[node.ID] = int32(len(f.edges))
			f.edges = append(f.edges, edge{pod: pod, link: int32(up[0].Link)})
			f.aggs = len(up)
		case topology.LayerAgg:
			if up := upPorts(t, node.ID); len(up) > 0 {
				f.aggLinks = append(f.aggLinks, int32(up[0].Link))
				f.cores = len(up)
			}
		}
	}
	f.pods = len(pods)
	for h := range f.rack {
		f.rack[h] = number[t.Link(topology.LinkID(h)).B]
	}
}

// upPorts returns a switch's ports that lead up. Their links are numbered one
// after the other.
func upPorts(t *topology.Topology, id topology.NodeID) []topology.Port {
	ports := t.Ports(id)
	for i, p := range ports {
		if p.Up {
			return ports[i:]
		}
	}
	return nil
}

// NewSpread is NewFabric for senders that spread every flow evenly over all of its paths,
// packet by packet. Then all ports that lead up from a switch carry the same, and so do
// all that lead down to it. Each such bundle is one port here, with the capacity of all,
// and a pair has only one path. All links must be live, and those of a layer equally
// fast, since otherwise they do not carry the same.
func NewSpread(t *topology.Topology) (*Fabric, error) {
	f, err := NewFabric(t)
	if err != nil {
		return nil, err
	}
	f.spread = true
	for _, e := range f.edges {
		if err := f.bundle(t, e.link, f.aggs, f.edges[0].link); err != nil {
			return nil, err
		}
	}
	// Of the aggregation switches of a pod, all carry the same as well.
	for pod := 0; f.cores > 0 && pod < f.pods; pod++ {
		if err := f.bundle(t, f.aggLinks[pod*f.aggs], f.aggs*f.cores, f.aggLinks[0]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// bundle gives the first of n links the capacity of all, which must be that of
// link like before.
func (f *Fabric) bundle(t *topology.Topology, first int32, n int, like int32) error {
	rate := t.Rate(topology.LinkID(like))
	for l := topology.LinkID(first); l < topology.LinkID(first)+topology.LinkID(n); l++ {
		if !t.Live(l) || t.Rate(l) != rate {
			return fmt.Errorf("fluid: link %s of %s is down or of another rate than others of its layer: even spreading needs all alike", t.LinkName(l), t)
		}
	}
	f.capacity[2*first], f.capacity[2*first+1] = rate*float64(n), rate*float64(n)
	return nil
}

// Capacity returns the capacities of ports, in Mbit/s. It must not be changed.
func (f *Fabric) Capacity() []float64 { return f.capacity }

// Hosts returns how many hosts there are.
func (f *Fabric) Hosts() int { return f.hosts }

// Paths returns how many paths a pair has, live or not. It is 1 within a rack, and if all
// paths are taken at once.
func (f *Fabric) Paths(src, dst topology.NodeID) int {
	a, b := f.rack[src], f.rack[dst]
	switch {
	case a == b || f.spread:
		return 1
	case f.edges[a].pod == f.edges[b].pod:
		return f.aggs
	default:
		return f.aggs * f.cores
	}
}

// Route returns the route from one host to another by a path, numbered as in
// topology.PathSet. Within a rack the number does not matter.
func (f *Fabric) Route(src, dst topology.NodeID, path int) Route {
	a, b := f.rack[src], f.rack[dst]
	from, to := int32(2*src), int32(2*dst+1)
	if a == b || path == Direct {
		return routeOf(from, to)
	}
	up, down := f.edges[a], f.edges[b]
	if up.pod == down.pod {
		g := int32(path)
		return routeOf(from, 2*(up.link+g), 2*(down.link+g)+1, to)
	}
	g, c := int32(path)/int32(f.cores), int32(path)%int32(f.cores)
	coreUp, coreDown := f.aggLinks[up.pod*int32(f.aggs)+g]+c, f.aggLinks[down.pod*int32(f.aggs)+g]+c
	return routeOf(from, 2*(up.link+g), 2*coreUp, 2*coreDown+1, 2*(down.link+g)+1, to)
}
