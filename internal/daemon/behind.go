package daemon

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/hostprog"
	"weft/topology"
	"weft/topology/graph"
)

// Behind is an entry of the list "behind": a host, and the prefixes of containers or virtual
// machines whose packets it forwards.
type Behind struct {
	Host     netip.Addr     `yaml:"host,auto"` // the zero Addr: this one
	Prefixes []netip.Prefix `yaml:"prefixes"`
}

// maxBehind bounds the prefixes behind all hosts. Each is a route of the kernel's.
const maxBehind = 8192

// graphBehind lists what a graph says is behind its hosts.
func graphBehind(g *graph.Graph) (list []hostprog.Behind, err error) {
	for h := range graph.NodeID(g.NumHosts()) {
		n := g.Node(h)
		for _, p := range n.Prefixes {
			i := slices.IndexFunc(n.Addresses, func(a netip.Addr) bool { return a.Is4() == p.Addr().Is4() })
			if i >= 0 {
				list = append(list, hostprog.Behind{Prefix: p, Host: n.Addresses[i]})
			}
		}
	}
	if n := len(list); n > maxBehind {
		return nil, fmt.Errorf("%d prefixes are behind its hosts, must be at most %d; join neighbours to wider ones", n, maxBehind)
	}
	return list, nil
}

// fabricOf is the fabric of an address's family, nil if there is none.
func (c *Config) fabricOf(a netip.Addr) *topology.Topology {
	if a.Is4() {
		return c.fabric
	}
	return c.six()
}

// checkBehind checks the list.
func (c *Config) checkBehind() error {
	switch {
	case len(c.Behind) == 0:
		return nil
	case c.tunnels():
		return c.lines.Errorf("behind", "is for fabrics; in a tunnel peers' prefixes say what is behind them (udp.peers, udp.prefixes)")
	case !c.Forwarded:
		return c.lines.Errorf("behind", "is given, and forwarded: false: packets of what is behind this host are left alone; remove one")
	}
	owners := make(map[netip.Prefix]int)
	lengths := make(map[int]bool)
	for i, b := range c.Behind {
		if len(b.Prefixes) == 0 {
			return c.lines.Errorf(fmt.Sprintf("behind[%d].prefixes", i), "is empty; name what is behind the host, such as 10.244.0.0/24")
		}
		for k, p := range b.Prefixes {
			key := fmt.Sprintf("behind[%d].prefixes[%d]", i, k)
			if err := c.checkPrefixBehind(key, fmt.Sprintf("behind[%d].host", i), p, b.Host); err != nil {
				return err
			}
			if _, ok := owners[p]; ok {
				return c.lines.Errorf(key, "%v is given twice; remove one", p)
			}
			owners[p], lengths[p.Bits()] = i, true
		}
	}
	if n := len(owners); n+len(c.inGraph) > maxBehind {
		return c.lines.Errorf("behind", "has %d prefixes, and the topology %d; both must be at most %d; join neighbours to wider ones", n, len(c.inGraph), maxBehind)
	}
	for i, b := range c.Behind {
		for k, p := range b.Prefixes {
			for _, other := range c.inGraph {
				if p == other.Prefix || b.Host.IsValid() && b.Host != other.Host && p.Overlaps(other.Prefix) {
					return c.lines.Errorf(fmt.Sprintf("behind[%d].prefixes[%d]", i, k), "%v: the topology says that %v is behind %v; one prefix is behind one host", p, other.Prefix, other.Host)
				}
			}
		}
	}
	for i, b := range c.Behind {
		for k, p := range b.Prefixes {
			for bits := range lengths {
				if wider, _ := p.Addr().Prefix(bits); bits < p.Bits() && wider.IsValid() {
					if other, ok := owners[wider]; ok && c.Behind[other].Host != b.Host {
						return c.lines.Errorf(fmt.Sprintf("behind[%d].prefixes[%d]", i, k), "%v lies within %v of another host; one prefix is behind one host", p, wider)
					}
				}
			}
		}
	}
	return nil
}

// checkPrefixBehind checks that a prefix may be behind a host.
func (c *Config) checkPrefixBehind(key, hostKey string, p netip.Prefix, host netip.Addr) error {
	least := 8
	if p.Addr().Is6() {
		least = 16
	}
	switch a := p.Addr(); {
	case p != p.Masked():
		return c.lines.Errorf(key, "%v has bits behind its length; write %v", p, p.Masked())
	case p.Bits() < least || !a.IsGlobalUnicast() || a.Is4In6():
		return c.lines.Errorf(key, "%v cannot be behind a host; name a network of containers, such as 10.244.0.0/24", p)
	case host.IsValid() && host.Is4() != a.Is4():
		return c.lines.Errorf(key, "%v and the host's address %v are of different families; give the host's address of the other one in an entry of its own", p, host)
	case c.learns():
		return nil // it is not known yet
	}
	t := c.fabricOf(p.Addr())
	if t == nil {
		return c.lines.Errorf(key, "%v: no IPv6 is carried through %s; remove it", p, c.Topology)
	}
	if !host.IsValid() {
		return nil
	}
	_, edge, ok := t.HostAt(host)
	if !ok {
		return c.lines.Errorf(hostKey, "%v is no host of %s", host, c.Topology)
	}
	for other := range t.Racks() {
		for _, rack := range t.RackPrefixesOf(other, p.Addr().Is6()) {
			if other != edge && rack.Overlaps(p) {
				return c.lines.Errorf(key, "%v overlaps %v, a rack that %v is not in", p, rack, host)
			}
		}
	}
	return nil
}
