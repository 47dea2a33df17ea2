package fabric

import (
	"net/netip"

	"weft/encap"
	"weft/topology"
)

// A path as labels is the output port at every switch on the way (Luopan §3.3). As
// SRv6 micro-SIDs they are in the destination of an outer IPv6 header, where a
// switch needs nothing but a route per port: it forwards what has the port's label
// in front out of that port, the labels behind moved up by one (End.X with
// NEXT-C-SID, RFC 9800). The switch that gets it without labels takes the header
// off; hosts have the bouncing switch do that (topology.PathSet.Choices).
//
// A path has no other way, so labels are not repaired when a link fails. Its
// routes are removed, packets that still come with its label are dropped, and the
// hosts choose other paths.

// The actions of SIDs, as ip calls them.
const (
	ActionEndX   = "End.X"   // out of Port, the next label moved to the front
	ActionEndDX4 = "End.DX4" // the outer header off, the inner packet to the main table
)

// SID is a route of a label, or of an operator's micro-SID: what to do with packets to
// Prefix. It is bound to Port, and the kernel removes it while Port is set down.
type SID struct {
	SID     byte         `json:"sid,omitempty"` // 0 of an operator's SID
	Prefix  netip.Prefix `json:"prefix"`
	Action  string       `json:"action"`
	Port    string       `json:"port"`
	NextHop netip.Addr   `json:"next_hop,omitzero"` // End.X: the neighbour, to which Routes6 has a route over Port
	Metric  int          `json:"metric"`
}

// GatePort is a port to a host, and the IPv4 addresses from which the host may
// send. A packet with labels must have the host's own addresses outside and
// inside.
type GatePort struct {
	Port    string       `json:"port"`
	Sources []netip.Addr `json:"sources"`
}

// defaultMetric6 is what the kernel makes of an IPv6 route's metric 0.
const defaultMetric6 = 1024

// planSRv6 adds to a plan what labels in IPv6 need.
func (p *NodePlan) planSRv6(t *topology.Topology, n topology.Node) error {
	if err := t.CheckPorts(encap.MaxSIDPort + 1); err != nil {
		return err
	}
	p.Address6, p.LinkLocal6 = topology.Addr6(n.Addr), topology.LinkLocal6(n.Addr)
	for i, port := range t.Ports(n.ID) {
		name, peer := p.Ports[i].Name, t.Node(port.Peer)
		up := t.Live(port.Link)
		hop := Hop{Addr: topology.LinkLocal6(peer.Addr), Port: name}
		switch {
		case !up:
			continue
		case n.Layer == topology.LayerHost:
			// For stacks behind a TUN of the host's, which write outer packets.
			p.Routes6 = append(p.Routes6, Route{Prefix: encap.SIDBlock, Via: []Hop{hop}, Src: p.Address6})
			continue
		}
		// End.X looks its next hop up as a packet's destination would be, and not
		// every kernel lets it say by which port: so a link-local one will not do.
		next := topology.Addr6(peer.Addr)
		p.Routes6 = append(p.Routes6, Route{Prefix: netip.PrefixFrom(next, 128), Via: []Hop{hop}})
		if peer.Layer != topology.LayerHost { // behind which no path goes on
			sid := byte(port.Index + 1)
			p.SIDs = append(p.SIDs, SID{sid, sidPrefix(sid, 24), ActionEndX, name, next, defaultMetric6})
		}
	}
	if n.Layer != topology.LayerHost {
		p.SIDs = append(p.SIDs, planDecap(*p, t, n)...)
		// Labels of no port. They are not to follow a default route.
		p.Routes6 = append(p.Routes6, Route{Prefix: encap.SIDBlock, Via: []Hop{}})
	}
	return nil
}

// planDecap returns the routes by which a switch decapsulates: any port's will do,
// but each is gone while its port is down.
func planDecap(p NodePlan, t *topology.Topology, n topology.Node) (list []SID) {
	for i, port := range t.Ports(n.ID) {
		if t.Live(port.Link) {
			list = append(list, SID{encap.SIDDecap, sidPrefix(encap.SIDDecap, 128), ActionEndDX4, p.Ports[i].Name, netip.Addr{}, defaultMetric6 + i})
		}
	}
	return list
}

// planGate returns an edge switch's ports to hosts, as p.Ports names them.
func planGate(p NodePlan, t *topology.Topology, n topology.Node) (gate []GatePort) {
	for i, port := range t.Ports(n.ID) {
		if peer := t.Node(port.Peer); n.Layer == topology.LayerEdge && peer.Layer == topology.LayerHost && t.Live(port.Link) {
			gate = append(gate, GatePort{p.Ports[i].Name, []netip.Addr{peer.Addr, t.EmbeddedAddr(peer.ID)}})
		}
	}
	return gate
}

// sidPrefix is what a packet is for that has the label in front: with 128 bits,
// nothing behind.
func sidPrefix(sid byte, bits int) netip.Prefix {
	a := encap.SIDBlock.Addr().As16()
	a[encap.SIDBlock.Bits()/8] = sid
	return netip.PrefixFrom(netip.AddrFrom16(a), bits)
}

// sysctls6 are what forwarding by labels in IPv6 needs, in the order in which they
// must be made.
func (p NodePlan) sysctls6() (s []Sysctl) {
	if p.has6() {
		s = append(s, Sysctl{Key: "net.ipv6.conf.all.forwarding", Value: "1"},
			Sysctl{Key: "net.ipv6.conf.lo.disable_ipv6", Value: "0"})
		for _, port := range p.Ports {
			s = append(s, Sysctl{Key: "net.ipv6.conf." + port.Name + ".disable_ipv6", Value: "0"},
				// Nobody may have a node of the fabric forward a packet by a list
				// of segments: it would come to labels behind the gate.
				Sysctl{Key: "net.ipv6.conf." + port.Name + ".seg6_enabled", Value: "0", Optional: true})
		}
	}
	return s
}

// What the kernel's routes of micro-SIDs say of their format.
const (
	sidBlockBits = 16
	sidBits      = 8
)
