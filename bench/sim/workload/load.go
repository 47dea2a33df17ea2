package workload

import (
	"cmp"
	"slices"

	"weft/topology"
)

// A load is the flows' payload as a part of a capacity; headers and acknowledgements come
// on top. Capacities are in Mbit/s, of the fabric with nothing down, as papers state loads.

// FlowsPerSecond is the rate of flows of a distribution that makes a load of a capacity.
func FlowsPerSecond(load, mbit float64, sizes *CDF) float64 {
	return load * mbit * 1e6 / 8 / sizes.Mean()
}

// HostsMbit is what the hosts' links carry together.
func HostsMbit(t *topology.Topology) float64 {
	sum := 0.0
	for h := range topology.NodeID(t.NumHosts()) {
		sum += t.Rate(t.Ports(h)[0].Link)
	}
	return sum
}

// FabricMbit is the rate at which all hosts together can send out of their racks: for
// each rack the lesser of the rates of its hosts' links and of its links to aggregation
// switches (or spines). In a fabric with an oversubscription of 4:1, load 0.8 of this is
// 0.2 of the hosts' links (as in Luopan §4.1, CONGA §5.2).
func FabricMbit(t *topology.Topology) float64 { return FabricMbitAt(t, 0) }

// FabricMbitAt is FabricMbit where links for which t has no rate have rateMbit.
func FabricMbitAt(t *topology.Topology, rateMbit float64) float64 {
	sum := 0.0
	for n := range t.Nodes() {
		if n.Layer == topology.LayerEdge {
			var down, up float64
			for _, p := range t.Ports(n.ID) {
				if p.Up {
					up += cmp.Or(t.Rate(p.Link), rateMbit)
				} else {
					down += cmp.Or(t.Rate(p.Link), rateMbit)
				}
			}
			sum += min(down, up)
		}
	}
	return sum
}

// PodMbit is what the links between the cores and the pod of a host carry, one way
// (Luopan §4.6).
func PodMbit(t *topology.Topology, host topology.NodeID) float64 {
	sum := 0.0
	for _, agg := range uplinked(t, t.EdgeOf(host)) {
		for _, p := range t.Ports(agg) {
			if p.Up {
				sum += t.Rate(p.Link)
			}
		}
	}
	return sum
}

// uplinked returns who is above a node, each once.
func uplinked(t *topology.Topology, n topology.NodeID) []topology.NodeID {
	var l []topology.NodeID
	for _, p := range t.Ports(n) {
		if p.Up && !slices.Contains(l, p.Peer) {
			l = append(l, p.Peer)
		}
	}
	return l
}
