// Package switchconf writes what switches must be configured with, in their own languages.
// It is pure.
package switchconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/topology/graph"
)

// hosts is the name of the peer group of hosts that hear routes, and of the route map that
// keeps out what they announce.
const hosts = "weft"

// Options are choices that the graph leaves open. The zero value is valid.
type Options struct {
	// BFD has switches watch their links to each other with packets each 100 ms, of which
	// three may be missing. It finds failures of which the ports know nothing.
	BFD bool
}

// FRR returns a switch's configuration in FRR's language: BGP over its links without
// addresses of their own (unnumbered), every path sent to those below, and at an edge
// switch sessions with hosts, from whom it takes nothing. It leaves out what the fabric has
// besides, such as the addresses of racks' gateways. The switch and its neighbours need an
// AS, and the ports names.
//
// A host at several edge switches is announced by each of them that has a route to it in the
// kernel. So the others lead to it when its link to one of them fails.
func FRR(g *graph.Graph, id graph.NodeID, opts Options) (string, error) {
	n := g.Node(id)
	if n.Tier == 0 {
		return "", fmt.Errorf("%s is a host; name a switch", n.Name)
	}
	if n.AS == 0 {
		return "", fmt.Errorf("%s has no AS; give it one, as: 65001", n.Name)
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("hostname %s", n.Name)
	// The kernel deletes next hops that are objects of their own when their port loses its
	// carrier, and FRR 8.4 does not make them again when it is back: a way would stay unused.
	line("no zebra nexthop kernel enable")
	line("interface lo")
	for _, a := range n.Addresses {
		line(" %s address %v", family(a), netip.PrefixFrom(a, a.BitLen()))
	}
	line("exit")
	line("router bgp %d", n.AS)
	line(" bgp router-id %v", routerID(n))
	// A switch may have the way to a rack by switches of other AS numbers.
	line(" bgp bestpath as-path multipath-relax")
	line(" no bgp ebgp-requires-policy")
	line(" no bgp network import-check")
	line(" timers bgp 3 9")
	shared := sharedHosts(g, id)
	up, err := neighbors(g, id, g.Up(id))
	if err != nil {
		return "", err
	}
	down, err := neighbors(g, id, g.Down(id))
	if err != nil {
		return "", err
	}
	for _, p := range append(up, down...) {
		line(" neighbor %s interface remote-as %d", p.port, p.as)
		// News of failures must not wait, as they do for 30 s by FRR's traditional defaults.
		line(" neighbor %s advertisement-interval 0", p.port)
		line(" neighbor %s timers connect 1", p.port)
		if opts.BFD {
			line(" neighbor %s bfd 3 100 100", p.port)
		}
	}
	if n.Tier == 1 {
		line(" neighbor %s peer-group", hosts)
		line(" neighbor %s remote-as external", hosts)
		line(" neighbor %s passive", hosts)
		line(" neighbor %s advertisement-interval 0", hosts)
		for _, p := range n.Prefixes {
			line(" bgp listen range %v peer-group %s", p, hosts)
		}
	}
	for _, f := range []string{"ipv4", "ipv6"} {
		line(" address-family %s unicast", f)
		for _, a := range n.Addresses {
			if isOf(a, f) {
				line("  network %v", netip.PrefixFrom(a, a.BitLen()))
			}
		}
		for _, p := range n.Prefixes {
			if isOf(p.Addr(), f) {
				line("  network %v", p)
			}
		}
		if f == "ipv6" && !n.SIDs.None() {
			line("  network %v", n.SIDs.Node)
		}
		if slices.ContainsFunc(shared, func(p netip.Prefix) bool { return isOf(p.Addr(), f) }) {
			line("  redistribute kernel route-map %s-shared", hosts)
		}
		for _, p := range append(up, down...) {
			line("  neighbor %s activate", p.port)
		}
		for _, p := range down {
			line("  neighbor %s addpath-tx-all-paths", p.port)
		}
		if n.Tier == 1 {
			line("  neighbor %s activate", hosts)
			line("  neighbor %s addpath-tx-all-paths", hosts)
			line("  neighbor %s route-map %s-none in", hosts, hosts)
		}
		line("  maximum-paths 64")
		line(" exit-address-family")
	}
	line("exit")
	if n.Tier == 1 {
		line("route-map %s-none deny 10", hosts)
		line("exit")
	}
	for i, f := range []string{"ip", "ipv6"} {
		listed := false
		for _, p := range shared {
			if family(p.Addr()) == f {
				listed = true
				line("%s prefix-list %s-shared permit %v", f, hosts, p)
			}
		}
		if listed {
			line("route-map %s-shared permit %d", hosts, 10*(i+1))
			line(" match %s address prefix-list %s-shared", f, hosts)
			line("exit")
		}
	}
	for _, l := range frrLocator(n.SIDs) {
		line("%s", l)
	}
	return b.String(), nil
}

// sharedHosts returns the addresses of an edge switch's hosts that have other edge switches,
// too, and the prefixes behind them.
func sharedHosts(g *graph.Graph, id graph.NodeID) (list []netip.Prefix) {
	if g.Node(id).Tier != 1 {
		return nil
	}
	for _, p := range g.Down(id) {
		if len(g.Edges(p.Peer)) < 2 {
			continue
		}
		host := g.Node(p.Peer)
		list = append(list, host.Prefixes...)
		for _, a := range host.Addresses {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return list
}

type neighbor struct {
	port string
	name string // of the switch there
	as   uint32
}

// neighbors returns the switches at ports, hosts left out.
func neighbors(g *graph.Graph, id graph.NodeID, ports []graph.Port) (list []neighbor, err error) {
	for _, p := range ports {
		peer, link := g.Node(p.Peer), g.Link(p.Link)
		if peer.Tier == 0 {
			continue
		}
		end := 0
		if low, _ := g.Ends(p.Link); low != id {
			end = 1
		}
		if link.Ports[end] == "" {
			return nil, fmt.Errorf("the port of %s to %s has no name; give both ends of that link one, ports: [swp1, swp7]", g.Node(id).Name, peer.Name)
		}
		if peer.AS == 0 {
			return nil, fmt.Errorf("%s has no AS; give it one, as: 65001", peer.Name)
		}
		list = append(list, neighbor{link.Ports[end], peer.Name, peer.AS})
	}
	return list, nil
}

// routerID returns a switch's IPv4 address or, if it has none, its AS number as an address:
// FRR would take 0.0.0.0, with which no session begins.
func routerID(n graph.Node) netip.Addr {
	if a, ok := first(n.Addresses, netip.Addr.Is4); ok {
		return a
	}
	return netip.AddrFrom4([4]byte{byte(n.AS >> 24), byte(n.AS >> 16), byte(n.AS >> 8), byte(n.AS)})
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "ip"
	}
	return "ipv6"
}

func isOf(a netip.Addr, family string) bool { return a.Is4() == (family == "ipv4") }

func first(list []netip.Addr, is func(netip.Addr) bool) (netip.Addr, bool) {
	for _, a := range list {
		if is(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}
