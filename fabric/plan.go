package fabric

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weft/encap"
	"weft/internal/kernel"
	"weft/topology"
)

// DefaultPortFormat names the ports p0, p1, ...
const DefaultPortFormat = "p%d"

// Options are the choices left open by the topology. The zero value is valid.
type Options struct {
	PortFormat string // how port N is called, such as swp%d; "" is DefaultPortFormat

	// Routing is how switches spread what goes up without an outer header: one of Routings;
	// "" is RoutingECMP.
	Routing string

	// Groups has routes say which of their hops are symmetric, for switches that choose for
	// each packet by their queues. See GroupsOf.
	Groups bool

	// The carriers of labels, besides IP-in-IP, which is always planned.
	SRv6 bool // by IPv6 addresses
	MPLS bool
}

// Carry adds what a carrier needs, by its name: ipip, srv6 or mpls.
func (o *Options) Carry(carrier string) error {
	c, err := encap.ParseCarrier(carrier)
	if err != nil {
		return err
	}
	o.SRv6 = o.SRv6 || c == encap.CarrierSRv6
	o.MPLS = o.MPLS || c == encap.CarrierMPLS
	return nil
}

// Sysctl is a kernel setting. An Optional one is missing from some kernels, and the node
// works without it.
type Sysctl = kernel.Sysctl

// NodePlan is everything that one node must be configured with.
type NodePlan struct {
	Topology string       `json:"topology"`
	Node     string       `json:"node"`
	Layer    string       `json:"layer"`
	Address  netip.Addr   `json:"address"`
	Device   string       `json:"device"`                   // that carries Address, as a /32
	More     []netip.Addr `json:"more_addresses,omitempty"` // on Device, too, of both families
	Ports    []Port       `json:"ports"`
	Sysctls  []Sysctl     `json:"sysctls"`
	Routes   []Route      `json:"routes"`
	Bouncing []netip.Addr `json:"bouncing,omitempty"` // of either family: IP-in-IP to these ends here

	// Virtual, if not empty, names for each bouncing address the routing table for
	// decapsulated packets. Where that table has no route, the main one is used.
	Virtual []VirtualSpine `json:"virtual,omitempty"`

	// With RoutingTwoLevel, of switches with ports up, by port. The routes of their tables
	// are among Routes.
	Suffixes []SuffixGroup `json:"suffixes,omitempty"`

	// With Options.SRv6. PlanGraph has others of these than LinkLocal6: see Port.
	Address6   netip.Addr `json:"address6,omitzero"`    // on Device, as a /128
	LinkLocal6 netip.Addr `json:"link_local6,omitzero"` // on every port
	Routes6    []Route    `json:"routes6,omitempty"`
	SIDs       []SID      `json:"sids,omitempty"`

	// Local are an operator's micro-SIDs that the switch answers to. Only PlanGraph gives them.
	Local []SID `json:"local,omitempty"`

	MPLS []MPLSRoute `json:"mpls,omitempty"` // with Options.MPLS
	Gate []GatePort  `json:"gate,omitempty"` // of edge switches, with either

	graph bool // it is PlanGraph's
}

// Port is one end of a cable. Ports have no addresses of their own; routes
// lead to the peer's address, on-link.
type Port struct {
	Name     string     `json:"name"`
	Peer     string     `json:"peer"`
	PeerAddr netip.Addr `json:"peer_address"`

	// Of PlanGraph, at links between hosts and edge switches: where routes of IPv6 lead, and
	// what the port has for those of the other end.
	PeerAddr6  netip.Addr `json:"peer_address6,omitzero"`
	LinkLocal6 netip.Addr `json:"link_local6,omitzero"`
}

// Route is one entry of a routing table. Packets are spread over the hops.
// Without hops they are refused as unreachable or dropped silently, unless
// another route leads to the prefix, such as that of a TUN interface.
type Route struct {
	Table  int          `json:"table,omitempty"` // 0: the main one
	Prefix netip.Prefix `json:"prefix"`
	Via    []Hop        `json:"via"`
	Drop   bool         `json:"drop,omitempty"` // instead of refusing; see topology.Route
	Src    netip.Addr   `json:"src,omitzero"`
}

// Hop is the way out of one port.
type Hop struct {
	Addr netip.Addr `json:"address"`
	Port string     `json:"port"`

	// Weight is how much goes this way in proportion to the route's other hops, from 1 to
	// 256. 0: they are equal.
	Weight int `json:"weight,omitempty"`

	// Group is the number of those of the route's hops that are symmetric to it (DRILL §3.4),
	// with Options.Groups. The kernel's routes have no place for it: AttachBalance and
	// Balance.Group take it.
	Group int `json:"group,omitempty"`
}

// Plan computes the configuration of one node. Links that are down in t are
// avoided by the routes.
func Plan(t *topology.Topology, id topology.NodeID, opts Options) (NodePlan, error) {
	if !t.Valid(id) {
		return NodePlan{}, fmt.Errorf("plan: node %d is not in %s", id, t)
	}
	format := opts.PortFormat
	if format == "" {
		format = DefaultPortFormat
	}
	if err := checkPortFormat(format); err != nil {
		return NodePlan{}, err
	}
	if err := opts.checkRouting(t); err != nil {
		return NodePlan{}, fmt.Errorf("plan: %w", err)
	}
	n := t.Node(id)
	p := NodePlan{
		Topology: t.String(),
		Node:     n.Name,
		Layer:    n.Layer.String(),
		Address:  n.Addr,
		Device:   "lo",
	}
	for _, port := range t.Ports(id) {
		peer := t.Node(port.Peer)
		p.Ports = append(p.Ports, Port{Name: fmt.Sprintf(format, port.Index), Peer: peer.Name, PeerAddr: peer.Addr})
	}
	if n.Layer == topology.LayerHost {
		p.Device = p.Ports[0].Name
	}
	routes := t.Routes
	if opts.Groups {
		routes = t.GroupedRoutes
	}
	for _, r := range routes(id) {
		p.Routes = append(p.Routes, planRoute(p, n, r))
	}
	if p.Bouncing = t.BouncingAddrs(id); len(p.Bouncing) > 1 {
		p.Virtual = virtualSpines(p.Bouncing)
	}
	if opts.Routing == RoutingTwoLevel {
		p.planSuffixes(t, n)
	}
	if opts.SRv6 {
		if err := p.planSRv6(t, n); err != nil {
			return NodePlan{}, fmt.Errorf("plan: %w", err)
		}
	}
	if opts.MPLS {
		p.planMPLS(t, n)
	}
	if opts.SRv6 || opts.MPLS {
		p.Gate = planGate(p, t, n)
	}
	p.Sysctls = planSysctls(p, n)
	return p, nil
}

func planRoute(p NodePlan, n topology.Node, r topology.Route) Route {
	route := Route{Prefix: r.Prefix, Via: []Hop{}, Drop: r.Drop}
	if r.Virtual > 0 {
		route.Table = virtualTable(r.Virtual - 1)
	}
	for n, i := range r.Ports {
		hop := Hop{Addr: p.Ports[i].PeerAddr, Port: p.Ports[i].Name}
		if r.Weights != nil {
			hop.Weight = r.Weights[n]
		}
		if r.Groups != nil {
			hop.Group = r.Groups[n]
		}
		route.Via = append(route.Via, hop)
	}
	if n.Layer == topology.LayerHost && len(route.Via) > 0 {
		route.Src = n.Addr
	}
	return route
}

// planSysctls lists the settings in the order in which they must be made:
// writing ip_forward resets others.
func planSysctls(p NodePlan, n topology.Node) []Sysctl {
	// Hosts forward too: the embedded stack sits behind a TUN of theirs.
	s := []Sysctl{{Key: "net.ipv4.ip_forward", Value: "1"}}
	// A packet may come in by any port, whatever the way back is: the paths
	// of the two directions are chosen independently.
	scopes := []string{"all", "default"}
	for _, port := range p.Ports {
		scopes = append(scopes, port.Name)
	}
	for _, scope := range scopes {
		s = append(s, Sysctl{Key: "net.ipv4.conf." + scope + ".rp_filter", Value: "0"})
	}
	// Without it a route over a port with no carrier stays in use.
	for _, scope := range scopes {
		s = append(s, Sysctl{Key: "net.ipv4.conf." + scope + ".ignore_routes_with_linkdown", Value: "1"})
	}
	s = append(s, p.sysctls6()...)
	if n.Layer == topology.LayerHost {
		return s
	}
	// Switches that hash alike choose alike: packets that one sent to its left
	// uplink the next sends there again, and half of the cores stay idle. So each
	// hashes the whole five-tuple (0x37: addresses, protocol, ports) with a seed of
	// its own; seed 0 would mean the kernel's.
	return append(append(s, fiveTuple()...),
		Sysctl{Key: "net.ipv4.fib_multipath_hash_seed", Value: strconv.Itoa(int(n.ID) + 1), Optional: true}, // Linux 6.11
	)
}

// fiveTuple is what the kernel's multipath routes hash: addresses, protocol and ports.
func fiveTuple() []Sysctl {
	return []Sysctl{{Key: hashPolicy, Value: "3"}, {Key: "net.ipv4.fib_multipath_hash_fields", Value: "0x37"}}
}

func checkPortFormat(format string) error {
	name := strings.Replace(format, "%d", "63", 1)
	switch {
	case strings.Count(format, "%") != 1 || !strings.Contains(format, "%d"):
		return fmt.Errorf("port format %q: must have one %%d for the port's number, as in swp%%d", format)
	case len(name) > kernel.MaxDeviceName:
		return fmt.Errorf("port format %q: %s is longer than the %d bytes of a device name", format, name, kernel.MaxDeviceName)
	}
	// These names are pasted into shells and sysctl keys.
	for _, c := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c) {
			return fmt.Errorf("port format %q: device names are letters, digits, _ and - only", format)
		}
	}
	return nil
}
