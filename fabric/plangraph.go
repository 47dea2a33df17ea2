package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/topology"
	"weft/topology/graph"
)

// PlanGraph computes what a node of a graph must be configured with apart from what the
// switches' routing daemons do: ports, addresses, settings, decapsulation, and all about
// the hosts at an edge switch. Routes between switches are the daemons'.
//
// A rack is routed: each host has a port of its own, with a route to its addresses. The
// edge switch has the racks' first addresses, at which hosts have their way out.
func PlanGraph(g *graph.Graph, id graph.NodeID) (NodePlan, error) {
	n := g.Node(id)
	p := NodePlan{Topology: "a graph", Node: n.Name, Layer: Layer(n.Tier).String(), Device: "lo", graph: true}
	p.Address, p.Address6, p.More = split(n.Addresses)
	p.Ports = GraphPorts(g, id)
	for i, port := range p.Ports {
		if port.Name == "" {
			return p, fmt.Errorf("plan: port %d of %s, to %s, has no name", i, n.Name, port.Peer)
		}
	}
	switch n.Tier {
	case 0:
		p.Device = p.Ports[0].Name
		if len(g.Edges(id)) > 1 {
			p.Device = "lo" // the addresses stay when one of the ports is down
		}
		p.planHost(g, id)
	case 1:
		if err := p.planRack(g, id); err != nil {
			return p, fmt.Errorf("plan: %w", err)
		}
	default:
		for _, a := range []netip.Addr{p.Address, p.Address6} {
			if a.IsValid() {
				p.Bouncing = append(p.Bouncing, a)
			}
		}
	}
	if err := p.planLocal(n.SIDs); err != nil {
		return p, fmt.Errorf("plan: switch %s: sids: %w", n.Name, err)
	}
	p.Sysctls = planSysctls(p, topology.Node{ID: topology.NodeID(id), Layer: Layer(n.Tier)})
	p.Sysctls = append(p.Sysctls, p.dualStackSysctls(n.Tier)...)
	if n.Tier == 0 && len(g.Edges(id)) > 1 {
		// The kernel's own choice between the ports is by flow, ports included.
		for _, family := range []string{"ipv4", "ipv6"} {
			p.Sysctls = append(p.Sysctls, Sysctl{Key: "net." + family + ".fib_multipath_hash_policy", Value: "1"})
		}
	}
	return p, nil
}

// Layer is what a tier of a graph is called.
func Layer(tier int) topology.Layer { return topology.Layer(min(tier, int(topology.LayerCore))) }

// split returns the first address of each family, and the others.
func split(list []netip.Addr) (first4, first6 netip.Addr, more []netip.Addr) {
	for _, a := range list {
		switch {
		case a.Is4() && !first4.IsValid():
			first4 = a
		case a.Is6() && !first6.IsValid():
			first6 = a
		default:
			more = append(more, a)
		}
	}
	return first4, first6, more
}

// GraphPorts returns a node's ports, those that lead down first. Their peers' addresses are
// where routes over them lead, known between a host and its edge switch.
func GraphPorts(g *graph.Graph, id graph.NodeID) []Port {
	var list []Port
	for end, ports := range [][]graph.Port{g.Up(id), g.Down(id)} {
		var side []Port
		for _, port := range ports {
			peer := g.Node(port.Peer)
			p := Port{Name: g.Link(port.Link).Ports[end], Peer: peer.Name}
			p.PeerAddr, _, _ = split(peer.Addresses)
			if g.Node(id).Tier == 0 {
				p.PeerAddr = gateway4(g, port.Peer)
			}
			if g.Node(id).Tier == 0 || peer.Tier == 0 {
				p.LinkLocal6, p.PeerAddr6 = linkLocal(id), linkLocal(port.Peer)
			}
			side = append(side, p)
		}
		list = append(side, list...)
	}
	return list
}

// linkLocal is a node's address on links between hosts and edge switches. An address that
// others know could not be a next hop there: the kernel refuses one to which there is a
// route by another port.
func linkLocal(id graph.NodeID) netip.Addr {
	n := uint32(id) + 1
	return topology.LinkLocal6(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}))
}

// gateway4 returns an edge switch's address in the first of its racks of IPv4.
func gateway4(g *graph.Graph, edge graph.NodeID) netip.Addr {
	for _, prefix := range g.Node(edge).Prefixes {
		if a, ok := Gateway(g, edge, prefix); ok && a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// Gateway returns the address that an edge switch has in one of its racks: one of its own
// or else the first but the network's that no other node has or has behind it. It is false where the rack
// is full. Edge switches that share a rack have different ones.
func Gateway(g *graph.Graph, edge graph.NodeID, rack netip.Prefix) (netip.Addr, bool) {
	if a, ok := ownIn(g, edge, rack); ok {
		return a, true
	}
	before := 0 // edge switches of the rack whose addresses come first
	for e, _ := g.Tier(1); e < edge; e++ {
		if _, own := ownIn(g, e, rack); !own && slices.Contains(g.Node(e).Prefixes, rack) {
			before++
		}
	}
	for a := rack.Addr().Next(); rack.Contains(a); a = a.Next() {
		if _, taken := g.ByAddr(a); taken || isBehind(g, edge, a) {
			continue
		}
		if before == 0 {
			return a, true
		}
		before--
	}
	return netip.Addr{}, false
}

// isBehind reports whether an address is one behind a host of an edge switch's.
func isBehind(g *graph.Graph, edge graph.NodeID, a netip.Addr) bool {
	return slices.ContainsFunc(g.Down(edge), func(p graph.Port) bool {
		return slices.Contains(g.Node(p.Peer).Prefixes, netip.PrefixFrom(a, a.BitLen()))
	})
}

// ownIn returns an edge switch's own address in a rack.
func ownIn(g *graph.Graph, edge graph.NodeID, rack netip.Prefix) (a netip.Addr, ok bool) {
	i := slices.IndexFunc(g.Node(edge).Addresses, rack.Contains)
	if i < 0 {
		return a, false
	}
	return g.Node(edge).Addresses[i], true
}

// planHost gives a host its ways out, by all of its ports. Of several edge switches it reaches
// each by the port that leads there.
func (p *NodePlan) planHost(g *graph.Graph, id graph.NodeID) {
	r4 := Route{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: []Hop{}, Src: p.Address}
	r6 := Route{Prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0), Via: []Hop{}, Src: p.Address6}
	for _, port := range p.Ports {
		if port.PeerAddr.IsValid() && p.Address.IsValid() {
			r4.Via = append(r4.Via, Hop{Addr: port.PeerAddr, Port: port.Name})
			if len(g.Edges(id)) > 1 {
				p.Routes = append(p.Routes, Route{Prefix: netip.PrefixFrom(port.PeerAddr, port.PeerAddr.BitLen()), Via: r4.Via[len(r4.Via)-1:], Src: p.Address})
			}
		}
		if p.Address6.IsValid() {
			r6.Via = append(r6.Via, Hop{Addr: port.PeerAddr6, Port: port.Name})
		}
	}
	if len(r4.Via) > 0 {
		p.Routes = append(p.Routes, r4)
	}
	if len(r6.Via) > 0 {
		p.Routes6 = append(p.Routes6, r6)
	}
}

// planRack gives an edge switch its gateways' addresses, routes to its hosts and what is
// behind them, and refuses what is in a rack and has no host.
func (p *NodePlan) planRack(g *graph.Graph, id graph.NodeID) error {
	add := func(r Route) {
		if r.Prefix.Addr().Is4() {
			p.Routes = append(p.Routes, r)
		} else {
			p.Routes6 = append(p.Routes6, r)
		}
	}
	for _, rack := range g.Node(id).Prefixes {
		a, ok := Gateway(g, id, rack)
		if !ok {
			return fmt.Errorf("rack %v of %s has no address left for its gateway", rack, p.Node)
		}
		if a != p.Address && a != p.Address6 && !slices.Contains(p.More, a) {
			p.More = append(p.More, a)
		}
		add(Route{Prefix: rack, Via: []Hop{}})
	}
	via := make(map[netip.Prefix]*Route) // a host may have two ports here
	var order []netip.Prefix
	for i, port := range g.Down(id) {
		host := g.Node(port.Peer)
		prefixes := slices.Clone(host.Prefixes)
		for _, a := range host.Addresses {
			prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
		}
		for _, prefix := range prefixes {
			hop := Hop{Addr: p.Ports[i].PeerAddr, Port: p.Ports[i].Name}
			if prefix.Addr().Is6() {
				hop.Addr = p.Ports[i].PeerAddr6
			}
			if !hop.Addr.IsValid() {
				continue
			}
			if via[prefix] == nil {
				via[prefix] = &Route{Prefix: prefix}
				order = append(order, prefix)
			}
			via[prefix].Via = append(via[prefix].Via, hop)
		}
	}
	for _, prefix := range order {
		add(*via[prefix])
	}
	return nil
}

// dualStackSysctls are what a node needs for IPv6 besides planSysctls.
func (p NodePlan) dualStackSysctls(tier int) []Sysctl {
	// Routers' announcements are for the routing daemons, not for the kernel. A node that
	// forwards heeds none.
	s := []Sysctl{{Key: "net.ipv6.conf.all.forwarding", Value: "1"}}
	for _, scope := range append([]string{"all", "default"}, p.portNames()...) {
		s = append(s, Sysctl{Key: "net.ipv6.conf." + scope + ".ignore_routes_with_linkdown", Value: "1"})
	}
	if tier == 0 {
		return s
	}
	return append(s,
		Sysctl{Key: "net.ipv6.fib_multipath_hash_policy", Value: "3"},
		Sysctl{Key: "net.ipv6.fib_multipath_hash_fields", Value: "0x37"})
}

func (p NodePlan) portNames() (names []string) {
	for _, port := range p.Ports {
		names = append(names, port.Name)
	}
	return names
}
