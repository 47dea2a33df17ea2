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
	ports, ok := m.labels.Of(p)
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
