// Package operator gives computed fabrics the addresses of an operator's plan, which no
// computed kind could have: racks of /26 out of 10.0.0.0/8 and 192.168.0.0/16 mixed and of
// /64 out of 2001:db8::/32, loopbacks out of 172.16.0.0/12 and 2001:db8:ffff::/48, and an
// AS for each switch (RFC 7938). The wiring and the rates stay. The same seed gives the
// same fabric. Behind each host is an address of either family, out of its rack, that is not
// its kernel's: for an embedded stack. The package is pure.
package operator

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"

	"weft/topology"
	"weft/topology/graph"
)

// firstAS is the first of the AS numbers of 32 bits for private use (RFC 6996). Tiers are
// asPerTier apart.
const (
	firstAS   = 4200000000
	asPerTier = 10_000_000
)

// Spec returns the fabric t, of a computed kind, as an operator would have it. Switches are
// called leaf1, spine1 and core1 by their tiers, hosts h1-1 by their racks, ports swp1 and,
// at hosts, eth1. The first address of each rack is left for its gateway.
func Spec(t *topology.Topology, seed uint64) graph.Spec {
	s, _ := SpecHomed(t, seed, Homing{}) // each host at its own edge switch can always be
	return s
}

type planner struct {
	t      *topology.Topology
	homing Homing
	r      *rand.Rand
	spec   graph.Spec
	used   map[netip.Addr]bool // addresses, and the first ones of racks
	racks  []rack
	rackOf map[topology.NodeID]int     // of edge switches
	first  int                         // which of racks4 the first rack is from
	count  [topology.LayerCore + 1]int // of switches made, by layer
	lowest [topology.LayerCore + 1]topology.NodeID
}

// rack is the edge switches of a plane that serve the same hosts.
type rack struct {
	edges    []topology.NodeID
	hosts    []topology.NodeID
	prefixes [2]netip.Prefix // IPv4, IPv6; not valid before the first switch is made
}

// addSwitch makes a switch of a plane.
func (p *planner) addSwitch(n topology.Node, plane int) {
	p.count[n.Layer]++
	s := graph.Node{Name: p.name(n.ID, plane), Tier: int(n.Layer), AS: firstAS + asPerTier*uint32(n.Layer) + uint32(p.count[n.Layer]),
		Addresses: []netip.Addr{p.pick(loopbacks4, 32), p.pick(loopbacks6, 128)}}
	if n.Layer == topology.LayerEdge {
		r := &p.racks[p.rackOf[n.ID]]
		if !r.prefixes[0].IsValid() {
			r.prefixes = p.prefixes(p.rackOf[n.ID], len(r.hosts))
		}
		s.Prefixes = append(s.Prefixes, r.prefixes[:]...)
	}
	p.spec.Nodes = append(p.spec.Nodes, s)
}

var (
	loopbacks4 = netip.MustParsePrefix("172.16.0.0/12")
	loopbacks6 = netip.MustParsePrefix("2001:db8:ffff::/48")
	racks4     = [2]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.0.0/16")}
	racks6     = netip.MustParsePrefix("2001:db8::/33") // the half without the loopbacks
)

const rackBits = 26

// prefixes returns those of a rack: a /26, or less where its hosts do not fit in, and a /64.
func (p *planner) prefixes(rack, hosts int) [2]netip.Prefix {
	// Besides hosts and what is embedded there, a gateway at each edge switch, the network's
	// own address and the one for broadcasts.
	length := min(rackBits, 32-bits.Len(uint(2*hosts+1+p.homing.edges())))
	from := racks4[(p.first+rack)%2]
	if rack >= 1<<(length-from.Bits())/2 { // 192.168.0.0/16 may be full
		from = racks4[0]
	}
	return [2]netip.Prefix{netip.PrefixFrom(p.pick(from, length), length), netip.PrefixFrom(p.pick(racks6, 64), 64)}
}

// addHost makes the host of a place in a rack, and its links.
func (p *planner) addHost(place, number int) {
	r := &p.racks[number]
	h := graph.Node{Name: fmt.Sprintf("h%d-%d", number+1, place+1)}
	for _, prefix := range r.prefixes {
		h.Addresses = append(h.Addresses, p.pick(prefix, prefix.Addr().BitLen()))
	}
	p.spec.Nodes = append(p.spec.Nodes, h)
	var link topology.LinkID
	for _, port := range p.t.Ports(r.hosts[place]) {
		link = port.Link
	}
	for plane := range p.homing.planes() {
		for i, edge := range r.edges {
			p.spec.Links = append(p.spec.Links, graph.Link{
				Ends:  [2]string{h.Name, p.name(edge, plane)},
				Ports: [2]string{fmt.Sprintf("eth%d", plane*len(r.edges)+i+1), fmt.Sprintf("swp%d", place+1)}, // eth0 is containerlab's own
				Rate:  p.t.Rate(link),
			})
		}
	}
}

// addEmbedded gives each host an address of either family for what is embedded there. It
// comes after all hosts, whose own addresses need not change for these.
func (p *planner) addEmbedded() {
	hosts := 0
	for _, r := range p.racks {
		hosts += len(r.hosts)
	}
	host := p.spec.Nodes[len(p.spec.Nodes)-hosts:]
	for _, r := range p.racks {
		for i := range r.hosts {
			for _, prefix := range r.prefixes {
				a := p.pick(prefix, prefix.Addr().BitLen())
				host[i].Prefixes = append(host[i].Prefixes, netip.PrefixFrom(a, a.BitLen()))
			}
		}
		host = host[len(r.hosts):]
	}
}

// addPlaneLinks makes the links between the switches of a plane.
func (p *planner) addPlaneLinks(plane int) {
	for l := range p.t.Links() {
		if p.t.Node(l.A).Layer == topology.LayerHost {
			continue
		}
		p.spec.Links = append(p.spec.Links, graph.Link{
			Ends:  [2]string{p.name(l.A, plane), p.name(l.B, plane)},
			Ports: [2]string{p.port(l.A, l.PortA), p.port(l.B, l.PortB)},
			Rate:  p.t.Rate(l.ID),
		})
	}
}

// port names a switch's port, of which an edge switch has as many to hosts as there are in its
// rack.
func (p *planner) port(id topology.NodeID, index int) string {
	if number, ok := p.rackOf[id]; ok {
		r := p.racks[number]
		index += len(r.hosts) - len(r.hosts)/len(r.edges)
	}
	return fmt.Sprintf("swp%d", index+1)
}

// Embedded returns the address of a family behind a host of a Spec, that of its embedded stack;
// the zero Addr if there is none.
func Embedded(host graph.Node, six bool) netip.Addr {
	for _, p := range host.Prefixes {
		if p.IsSingleIP() && p.Addr().Is6() == six {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// pick returns a network of some length within another one, or an address, that is not
// taken. It is never the first address, its neighbour, which is for a gateway, or the last.
func (p *planner) pick(within netip.Prefix, length int) netip.Addr {
	free := length - within.Bits() // bits to choose
	for {
		n := p.r.Uint64() >> max(0, 64-free)
		a := add(within.Addr(), n, within.Addr().BitLen()-length)
		single := length == within.Addr().BitLen()
		if p.used[a] || single && (n < 2 || free < 64 && n == 1<<free-1) {
			continue
		}
		p.used[a] = true
		return a
	}
}

// add adds n shifted by some bits to an address whose bits there are 0.
func add(a netip.Addr, n uint64, shift int) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])|uint32(n<<shift))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	high, low := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	if shift >= 64 {
		high |= n << (shift - 64)
	} else {
		low |= n << shift
		if shift > 0 {
			high |= n >> (64 - shift)
		}
	}
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	return netip.AddrFrom16(b)
}
