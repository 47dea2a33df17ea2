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
	p := planner{t: t, r: rand.New(rand.NewPCG(seed, 0x6f70)), used: make(map[netip.Addr]bool),
		names: make([]string, t.NumNodes()), racks: make(map[topology.NodeID][2]netip.Prefix)}
	p.first = p.r.IntN(2)
	var s graph.Spec
	for n := range t.Nodes() {
		if n.Layer != topology.LayerHost {
			s.Nodes = append(s.Nodes, p.addSwitch(n))
		}
	}
	for n := range t.Hosts() {
		s.Nodes = append(s.Nodes, p.addHost(n))
	}
	hosts := s.Nodes[len(s.Nodes)-t.NumHosts():]
	for n := range t.Hosts() { // after all others, whose addresses need not change for these
		for _, rack := range p.racks[t.EdgeOf(n.ID)] {
			a := p.pick(rack, rack.Addr().BitLen())
			hosts[n.ID].Prefixes = append(hosts[n.ID].Prefixes, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for l := range t.Links() {
		s.Links = append(s.Links, graph.Link{
			Ends:  [2]string{p.names[l.A], p.names[l.B]},
			Ports: [2]string{p.port(l.A, l.ID), p.port(l.B, l.ID)},
			Rate:  t.Rate(l.ID),
		})
	}
	return s
}

type planner struct {
	t     *topology.Topology
	r     *rand.Rand
	used  map[netip.Addr]bool // addresses, and the first ones of racks
	names []string            // by node
	racks map[topology.NodeID][2]netip.Prefix
	first int                         // which of racks4 the first rack is from
	count [topology.LayerCore + 1]int // switches named, by layer
	hosts int                         // named in the rack
}

func (p *planner) addSwitch(n topology.Node) graph.Node {
	p.count[n.Layer]++
	i := p.count[n.Layer]
	p.names[n.ID] = fmt.Sprintf("%s%d", [...]string{"", "leaf", "spine", "core"}[n.Layer], i)
	s := graph.Node{Name: p.names[n.ID], Tier: int(n.Layer), AS: firstAS + asPerTier*uint32(n.Layer) + uint32(i),
		Addresses: []netip.Addr{p.pick(loopbacks4, 32), p.pick(loopbacks6, 128)}}
	if n.Layer == topology.LayerEdge {
		p.racks[n.ID] = p.rack(n.ID)
		s.Prefixes = append(s.Prefixes, p.racks[n.ID][0], p.racks[n.ID][1])
	}
	return s
}

var (
	loopbacks4 = netip.MustParsePrefix("172.16.0.0/12")
	loopbacks6 = netip.MustParsePrefix("2001:db8:ffff::/48")
	racks4     = [2]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.0.0/16")}
	racks6     = netip.MustParsePrefix("2001:db8::/33") // the half without the loopbacks
)

const rackBits = 26

// rack returns the prefixes of an edge switch's rack: a /26, or less where its hosts do not
// fit in, and a /64.
func (p *planner) rack(edge topology.NodeID) [2]netip.Prefix {
	hosts := 0
	for _, port := range p.t.Ports(edge) {
		if !port.Up {
			hosts++
		}
	}
	// Besides hosts and what is embedded there, the gateway, the network's own address and
	// the one for broadcasts.
	length := min(rackBits, 32-bits.Len(uint(2*hosts+2)))
	from := racks4[(p.first+len(p.racks))%2]
	if len(p.racks) >= 1<<(length-from.Bits())/2 { // 192.168.0.0/16 may be full
		from = racks4[0]
	}
	return [2]netip.Prefix{netip.PrefixFrom(p.pick(from, length), length), netip.PrefixFrom(p.pick(racks6, 64), 64)}
}

func (p *planner) addHost(n topology.Node) graph.Node {
	edge := p.t.EdgeOf(n.ID)
	if n.ID == p.t.FirstHost(edge) {
		p.hosts = 0
	}
	p.hosts++
	p.names[n.ID] = fmt.Sprintf("h%s-%d", p.names[edge][len("leaf"):], p.hosts)
	h := graph.Node{Name: p.names[n.ID]}
	for _, rack := range p.racks[edge] {
		h.Addresses = append(h.Addresses, p.pick(rack, rack.Addr().BitLen()))
	}
	return h
}

// port names a link's end.
func (p *planner) port(id topology.NodeID, l topology.LinkID) string {
	if p.t.Node(id).Layer == topology.LayerHost {
		return "eth1" // eth0 is containerlab's own
	}
	for _, port := range p.t.Ports(id) {
		if port.Link == l {
			return fmt.Sprintf("swp%d", port.Index+1)
		}
	}
	return ""
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
