package paths

import (
	"net/netip"

	"weft/encap"
	"weft/topology"
)

// Outer returns the outer header of path n of a set, from a host with an address. The
// carrier is IP-in-IP or SRv6, and of SRv6 the ports of the path must have labels
// (topology.Topology.CheckPorts).
func Outer(c encap.Carrier, self netip.Addr, set topology.PathSet, n int) encap.Outer {
	if c == encap.CarrierSRv6 {
		return LabelsOuter(self, set.Choices(n))
	}
	o, _ := encap.NewIPIPOuter(self, set.Addr(n)) // both are IPv4
	return o
}

// LabelsOuter returns the SRv6 header of a packet that leaves the switches on its way
// by these ports. They must have labels.
func LabelsOuter(self netip.Addr, ports []int) encap.Outer {
	o, _ := encap.NewSRv6Outer(topology.Addr6(self), netip.AddrFrom16(SIDs(ports)))
	return o
}

// SIDs returns the SRv6 destination that leads out of these ports. They must have
// labels.
func SIDs(ports []int) [16]byte {
	a, _ := encap.SIDs(ports)
	return a.As16()
}

// OuterTo returns the outer header of a path, live or not, from a host to the host
// with another address; false if there is no such host or path, or none is needed.
func OuterTo(t *topology.Topology, c encap.Carrier, self, to netip.Addr, path int) (o encap.Outer, ok bool) {
	from, _ := t.ByAddr(self)
	id, ok := t.ByAddr(to)
	if !ok || int(id) >= t.NumHosts() {
		return o, false
	}
	set := t.Paths(from, id)
	if set.Direct() || path < 0 || path >= set.Count() {
		return o, false
	}
	return Outer(c, self, set, path), true
}
