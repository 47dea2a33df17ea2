package stack

import (
	"net/netip"

	"weft/encap"
	"weft/internal/paths"
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
	return paths.LabelsOuter(m.self, ports), ok
}
