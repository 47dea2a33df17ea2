package sim

import (
	"fmt"

	"weft/bench/sim/spray"
	"weft/topology"
)

// fabric is what routes are computed from. Ports are numbered 2·link for the way
// up, 2·link+1 for the way down.
type fabric struct {
	rack      []int32 // of a host
	pod       []int32 // of a rack
	edge      []int32 // a rack's edge switch
	edgeUp    []int32 // the link from a rack to its first aggregation switch
	agg       []int32 // a pod's first aggregation switch
	coreUp    []int32 // the link from a pod to its first core
	aggOf     []int32 // of a path between pods: which aggregation switch
	cores     int32   // of an aggregation switch
	numAggs   int32   // of a pod
	rackHosts int32
}

func newFabric(t *topology.Topology) fabric {
	var f fabric
	pods := make(map[topology.NodeID]int32)
	last := topology.NodeID(-1)
	for h := range t.NumHosts() {
		edge := t.Link(topology.LinkID(h)).B
		if edge == last {
			f.rack = append(f.rack, int32(len(f.edge)-1))
			continue
		}
		last = edge
		f.rack = append(f.rack, int32(len(f.edge)))
		f.edge = append(f.edge, int32(edge))
		up := upPorts(t, edge)
		f.edgeUp = append(f.edgeUp, int32(up[0].Link))
		f.numAggs = int32(len(up))
		agg := up[0].Peer
		pod, ok := pods[agg]
		if !ok {
			pod = int32(len(pods))
			pods[agg] = pod
			f.agg = append(f.agg, int32(agg))
			if up := upPorts(t, agg); len(up) > 0 {
				f.coreUp = append(f.coreUp, int32(up[0].Link))
				f.cores = int32(len(up))
			}
		}
		f.pod = append(f.pod, pod)
	}
	f.rackHosts = int32(len(f.rack) / len(f.edge))
	for a := range f.numAggs {
		for range f.cores {
			f.aggOf = append(f.aggOf, a)
		}
	}
	return f
}

func upPorts(t *topology.Topology, n topology.NodeID) []topology.Port {
	ports := t.Ports(n)
	for len(ports) > 0 && !ports[0].Up {
		ports = ports[1:]
	}
	return ports
}

// route sets the ports that a packet passes from a host to another one by a path
// of theirs, the host's own left out, and returns how many they are. Within a rack
// path does not matter.
func (f *fabric) route(r *[maxHops]int32, src, dst int32, path int) uint8 {
	from, to := f.rack[src], f.rack[dst]
	if from == to {
		r[0] = down(dst)
		return 1
	}
	if f.pod[from] == f.pod[to] {
		r[0] = up(f.edgeUp[from] + int32(path))
		r[1] = down(f.edgeUp[to] + int32(path))
		r[2] = down(dst)
		return 3
	}
	agg := f.aggOf[path]
	r[0] = up(f.edgeUp[from] + agg)
	r[1] = up(f.coreUp[f.pod[from]] + int32(path))
	r[2] = down(f.coreUp[f.pod[to]] + int32(path))
	r[3] = down(f.edgeUp[to] + agg)
	r[4] = down(dst)
	return 5
}

// hops is how many ports route would set.
func (f *fabric) hops(src, dst int32) uint8 {
	from, to := f.rack[src], f.rack[dst]
	switch {
	case from == to:
		return 1
	case f.pod[from] == f.pod[to]:
		return 3
	}
	return 5
}

func up(link int32) int32   { return 2 * link }
func down(link int32) int32 { return 2*link + 1 }

// place is where a port is.
func place(t *topology.Topology, port int) int {
	l := t.Link(topology.LinkID(port / 2))
	isUp := port%2 == 0
	switch layer := t.Node(l.A).Layer; {
	case layer == topology.LayerHost && isUp:
		return HostNIC
	case layer == topology.LayerHost:
		return EdgeDown
	case layer == topology.LayerEdge && isUp:
		return EdgeUp
	case layer == topology.LayerEdge:
		return AggDown
	case isUp:
		return AggUp
	}
	return CoreDown
}

// checkParallel says what does not go with Config.Parallel.
func (f *fabric) checkParallel(n int) error {
	switch {
	case n < 0 || n > spray.MaxParallel:
		return fmt.Errorf("sim: Parallel is %d; want from 1 to %d, or 0 for 1", n, spray.MaxParallel)
	case n > 1 && f.cores > 0:
		return fmt.Errorf("sim: Parallel is %d, and the fabric is no leaf-spine; leave it out", n)
	case n > 1 && int(f.numAggs)%n != 0:
		return fmt.Errorf("sim: Parallel is %d; want a part of the %d spines of Topology", n, f.numAggs)
	}
	return nil
}
