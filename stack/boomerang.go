package stack

import (
	"net/netip"

	"weft/encap"
	"weft/liveness"
	"weft/topology"
)

// probeKey is what the outer header of a probe depends on.
type probeKey struct {
	dst  topology.NodeID
	path int
	via  netip.Addr
}

// maxOuters bounds the outer headers of probes that are kept, 160 bytes each.
// Above it they are made anew.
const maxOuters = 1 << 12

func (m *monitor) outerOf(p *liveness.Probe) (o encap.Outer, ok bool) {
	if m.carrier != encap.CarrierSRv6 {
		o, err := encap.NewIPIPOuter(m.self, p.Via)
		return o, err == nil
	}
	self, _ := m.current.ByAddr(m.self)
	if p.Kind() != encap.Boomerang {
		set := m.current.Paths(self, p.Dst)
		return outer(m.carrier, m.self, set, p.Path), p.Path < set.Count()
	}
	if m.peers == nil {
		m.peers = distant(m.current, self)
	}
	ports, ok := roundTrip(m.current, self, m.peers, p.Via)
	return labelsOuter(m.self, ports), ok
}

// pathsTo are the paths from a Host to the host with an address; false if that is
// none, or nobody bounces on the way to it.
func pathsTo(t *topology.Topology, self, to netip.Addr) (set topology.PathSet, ok bool) {
	from, _ := t.ByAddr(self)
	id, ok := t.ByAddr(to)
	if !ok || int(id) >= t.NumHosts() {
		return set, false
	}
	set = t.Paths(from, id)
	return set, !set.Direct()
}

// roundTrip is the labels that lead up from a host to the switch that has a
// bouncing address and down again to the host's edge switch; false if no path of
// the host's bounces there. A path has the same number in both directions, and as
// many labels up as down. peers are the host's distant ones.
func roundTrip(t *topology.Topology, self topology.NodeID, peers []topology.NodeID, via netip.Addr) (ports []int, ok bool) {
	for _, peer := range peers {
		there, back := t.Paths(self, peer), t.Paths(peer, self)
		for n := range there.Count() {
			if there.Addr(n) == via {
				up, down := there.Labels(n), back.Labels(n)
				return append(up[:len(up)/2], down[len(down)/2:]...), true
			}
		}
	}
	return nil, false
}

// distant are hosts, one of each kind that a host's paths differ by: of another
// rack of its pod, and of another pod, as far as there are. It looks at all hosts.
func distant(t *topology.Topology, self topology.NodeID) (peers []topology.NodeID) {
	seen := 0
	for h := topology.NodeID(0); int(h) < t.NumHosts(); h++ {
		if n := len(t.Paths(self, h).Bases); n > 0 && seen&(1<<n) == 0 {
			seen |= 1 << n
			peers = append(peers, h)
		}
	}
	return peers
}
