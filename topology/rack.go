package topology

import (
	"iter"
	"net/netip"
)

// rackBits is the length of a rack's prefix (thesis §3.1.2).
const rackBits = 24

// EdgeOf returns the edge switch of a host, which must be one of t's. Whether its link
// is down does not matter. It allocates nothing.
func (t *Topology) EdgeOf(host NodeID) NodeID {
	if t.view != nil {
		return 1
	}
	return NodeID(t.numHosts() + int(host)/t.hosts)
}

// Racks yields the edge switches of all racks in the order of their numbers. Where the fabric
// is data, those without addresses of their own are none, but for the host's.
func (t *Topology) Racks() iter.Seq[NodeID] {
	first, n := t.numHosts(), t.numEdges()
	if t.view != nil {
		first, n = 1, len(t.view.racks)
	}
	return func(yield func(NodeID) bool) {
		for i := range n {
			if t.view != nil && i > 0 && len(t.view.racks[i].prefixes) == 0 {
				continue
			}
			if !yield(NodeID(first + i)) {
				return
			}
		}
	}
}

// FirstHost returns the first host of an edge switch's rack. Every host there has the
// same paths, except for paths that single hosts avoid.
func (t *Topology) FirstHost(edge NodeID) NodeID {
	if t.view != nil {
		return edge
	}
	return NodeID((int(edge) - t.numHosts()) * t.hosts)
}

// HostAt returns the host that has an address, and its edge switch. A host is named by the
// address of its kernel. ok is false if the address is no host's.
func (t *Topology) HostAt(a netip.Addr) (host netip.Addr, edge NodeID, ok bool) {
	if t.view != nil {
		if edge, ok = t.view.rackOf(a); !ok {
			return netip.Addr{}, 0, false
		}
		return a, edge, true
	}
	id, ok := t.ByAddr(a)
	if !ok || int(id) >= t.numHosts() {
		return netip.Addr{}, 0, false
	}
	return t.addr(t.position(id)), t.EdgeOf(id), true
}

// RackOf returns the prefix of a host's or an edge switch's rack, the first if it has
// several. It holds the
// addresses of the switch, of its hosts and of their embedded stacks, and no others.
func (t *Topology) RackOf(id NodeID) netip.Prefix {
	if t.view != nil {
		if r := t.view.rack(id); r != nil && len(r.prefixes) > 0 {
			return r.prefixes[0]
		}
		return netip.Prefix{}
	}
	p := t.position(id)
	return netip.PrefixFrom(t.subnet(p.pod, p.sw), rackBits)
}

// RackPrefixes returns all prefixes of an edge switch's rack. It has one where the fabric
// is computed. They are in order, IPv4 first. The list must not be changed.
func (t *Topology) RackPrefixes(edge NodeID) []netip.Prefix {
	if t.view != nil {
		return t.view.rack(edge).prefixes
	}
	return []netip.Prefix{t.RackOf(edge)}
}

// RackPrefixesOf returns those of RackPrefixes that are of one family: IPv6, or IPv4.
func (t *Topology) RackPrefixesOf(edge NodeID, six bool) []netip.Prefix {
	list := t.RackPrefixes(edge)
	n := 0
	for n < len(list) && list[n].Addr().Is4() { // they come first
		n++
	}
	if six {
		return list[n:]
	}
	return list[:n:n]
}

// RackAt returns the edge switch of the rack whose prefix holds an address, whether
// somebody has that address or not. It is false if no rack's prefix does.
func (t *Topology) RackAt(addr netip.Addr) (edge NodeID, ok bool) {
	if t.view != nil {
		return t.view.rackOf(addr)
	}
	if !addr.Is4() {
		return 0, false
	}
	a := addr.As4()
	a[3] = 1
	edge, ok = t.ByAddr(netip.AddrFrom4(a))
	return edge, ok && t.position(edge).layer == LayerEdge
}
