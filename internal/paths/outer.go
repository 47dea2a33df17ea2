package paths

import (
	"net/netip"

	"weft/encap"
	"weft/topology"
)

// OuterBy returns the outer header of a packet from a host's address self. With IP-in-IP
// it leads to the bouncing switch bounce, of the same family, with SRv6 out of the ports of
// the switches on its way. It fails if the families differ or a port has no label.
func OuterBy(c encap.Carrier, self, bounce netip.Addr, ports []int) (encap.Outer, error) {
	if c != encap.CarrierSRv6 {
		return encap.NewIPIPOuter(self, bounce)
	}
	sids, err := encap.SIDs(ports)
	if err != nil {
		return encap.Outer{}, err
	}
	if !self.Is6() {
		self = topology.Addr6(self)
	}
	return encap.NewSRv6Outer(self, sids)
}

// Outer returns the outer header of path n of a set, from a host's address self. The
// carrier is IP-in-IP or SRv6. With SRv6 the ports of the path must have labels
// (topology.Topology.CheckPorts).
func Outer(c encap.Carrier, self netip.Addr, set topology.PathSet, n int) encap.Outer {
	var ports []int
	if c == encap.CarrierSRv6 {
		ports = set.Choices(n)
	}
	o, _ := OuterBy(c, self, set.Addr(n), ports) // both are of one family
	return o
}

// OuterTo returns the outer header of a path, live or not, from one host's address to
// another's. ok is false if there is no such host or path, or if the path needs no
// header.
func OuterTo(t *topology.Topology, c encap.Carrier, self, to netip.Addr, path int) (o encap.Outer, ok bool) {
	from, _ := t.ByAddr(self)
	_, edge, ok := t.HostAt(to)
	if !ok {
		return o, false
	}
	set := t.Paths(from, edge)
	if !t.Computed() && path >= 0 && set.Count() > 0 {
		path %= set.Count() // the peer numbers them otherwise, so any is as good
	}
	if set.Direct() || path < 0 || path >= set.Count() {
		return o, false
	}
	return Outer(c, self, set, path), true
}
