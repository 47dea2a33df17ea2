package paths

import (
	"errors"
	"net/netip"

	"weft/encap"
	"weft/topology"
)

// OuterBy returns the outer header of a packet from a host's address self. With IP-in-IP
// it leads to the bouncing switch bounce. With SRv6 it leads out of the ports of the switches
// on its way; where the fabric is data, to the SIDs of the bouncing switch, and ports do not
// matter. It fails if the addresses are of two families, a port has no label, or the fabric has
// not what CheckSRv6 looks for.
func OuterBy(t *topology.Topology, c encap.Carrier, self, bounce netip.Addr, ports []int) (encap.Outer, error) {
	switch {
	case c != encap.CarrierSRv6:
		return encap.NewIPIPOuter(self, bounce)
	case !t.Computed():
		src, known := t.SIDSource()
		sid4, ok4 := t.SIDAt(bounce, false)
		sid6, ok6 := t.SIDAt(bounce, true)
		if !known || !ok4 || !ok6 {
			return encap.Outer{}, errNoSIDs
		}
		return encap.NewSIDOuter(src, sid4, sid6)
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

var errNoSIDs = errors.New("no SIDs of the bouncing switch, or no IPv6 address of the host, are known")

// CheckSRv6 says why a fabric's packets cannot have their paths as SRv6; nil if they can.
func CheckSRv6(t *topology.Topology) error {
	if t.Computed() {
		return t.CheckPorts(encap.MaxSIDPort + 1)
	}
	return t.CheckSIDs()
}

// Source6 returns the IPv6 address from which the host with the address self sends by SRv6; the
// zero Addr if it has none.
func Source6(t *topology.Topology, self netip.Addr) netip.Addr {
	if t.Computed() {
		return topology.Addr6(self)
	}
	src, _ := t.SIDSource()
	return src
}

// Outer returns the outer header of path n of a set of t, from a host's address self. The
// carrier is IP-in-IP or SRv6, which CheckSRv6 must allow.
func Outer(t *topology.Topology, c encap.Carrier, self netip.Addr, set topology.PathSet, n int) encap.Outer {
	var ports []int
	if c == encap.CarrierSRv6 {
		ports = set.Choices(n)
	}
	o, _ := OuterBy(t, c, self, set.Addr(n), ports) // of one family
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
	return Outer(t, c, self, set, path), true
}
