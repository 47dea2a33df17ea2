package topology

import "net/netip"

// rackBits is the length of a rack's prefix (thesis §3.1.2).
const rackBits = 24

// EdgeOf returns the edge switch of a host, which must be one of t's. Whether its link
// is down does not matter. It allocates nothing.
func (t *Topology) EdgeOf(host NodeID) NodeID {
	return NodeID(t.numHosts() + int(host)/t.hosts)
}

// FirstHost returns the first host of an edge switch's rack. Every host there has the
// same paths, except for paths that single hosts avoid.
func (t *Topology) FirstHost(edge NodeID) NodeID {
	return NodeID((int(edge) - t.numHosts()) * t.hosts)
}

// RackOf returns the prefix of a host's or an edge switch's rack. It holds the
// addresses of the switch, of its hosts and of their embedded stacks, and no others.
func (t *Topology) RackOf(id NodeID) netip.Prefix {
	p := t.position(id)
	return netip.PrefixFrom(t.subnet(p.pod, p.sw), rackBits)
}

// RackAt returns the edge switch of the rack whose prefix holds an address, whether
// somebody has that address or not. It is false if no rack's prefix does.
func (t *Topology) RackAt(addr netip.Addr) (edge NodeID, ok bool) {
	if !addr.Is4() {
		return 0, false
	}
	a := addr.As4()
	a[3] = 1
	edge, ok = t.ByAddr(netip.AddrFrom4(a))
	return edge, ok && t.position(edge).layer == LayerEdge
}
