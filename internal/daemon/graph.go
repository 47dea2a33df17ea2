package daemon

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"weft/internal/config"
	"weft/topology"
	"weft/topology/graph"
	"weft/topoupdate/bgp/session"
)

// learns reports whether the host learns the fabric from its switches.
func (c *Config) learns() bool { return c.Topology == TopologyBGP && !c.tunnels() }

// checkBGP checks what the sessions need.
func (c *Config) checkBGP() error {
	switch {
	case c.labels() && c.BGP.SIDBlock == "":
		return c.lines.Errorf("encapsulation", "srv6 with topology: bgp needs bgp.sid_block, the block that the switches' locators lie in, such as fcbb:bbbb::/32; or use ipip")
	case c.labels() && c.receives():
		return c.errSIDsReceive()
	}
	_, err := c.session()
	return err
}

// errSIDsReceive says where SIDs cannot be used.
func (c *Config) errSIDsReceive() error {
	return c.lines.Errorf("encapsulation", "srv6 to the SIDs of switches is for mode: offload, without resequence: the TUN leads packets by labels alone; use ipip")
}

// session is the configuration of the sessions with the host's switches.
func (c *Config) session() (s session.Config, err error) {
	if c.BGP.AS == 0 {
		return s, c.lines.Errorf("bgp.as", "is missing; give this host a number of its own, such as 4200000001, under which its switches know it")
	}
	if err := c.between("bgp.as", c.BGP.AS, 1, math.MaxUint32); err != nil {
		return s, err
	}
	s.AS = uint32(c.BGP.AS)
	if s.SIDBlock, err = c.sidBlock(); err != nil {
		return s, err
	}
	if len(c.BGP.Neighbors) == 0 {
		return s, c.lines.Errorf("bgp.neighbors", "is empty; name the switches that this host is wired to, such as [192.168.1.1=65101]")
	}
	password, err := c.password()
	if err != nil {
		return s, err
	}
	for i, text := range c.BGP.Neighbors {
		n, err := session.ParseNeighbor(text)
		if err != nil {
			return s, c.lines.Errorf(fmt.Sprintf("bgp.neighbors[%d]", i), "%w", err)
		}
		n.Password = password
		s.Neighbors = append(s.Neighbors, n)
	}
	return s, nil
}

// sidBlock is that of the switches' locators; the zero Prefix if there is none.
func (c *Config) sidBlock() (block netip.Prefix, err error) {
	if c.BGP.SIDBlock == "" {
		return block, nil
	}
	block, err = netip.ParsePrefix(c.BGP.SIDBlock)
	if err != nil || block != block.Masked() || block.Bits() != graph.BlockBits || !block.Addr().Is6() || block.Addr().Is4In6() {
		return block, c.lines.Errorf("bgp.sid_block", "is %q, must be a block of IPv6 of 32 bits (F3216), such as fcbb:bbbb::/32", c.BGP.SIDBlock)
	}
	return block, nil
}

// password reads that of the sessions (RFC 2385), "" for none.
func (c *Config) password() (string, error) {
	if c.BGP.PasswordFile == "" {
		return "", nil
	}
	password, err := config.ReadPassword(c.BGP.PasswordFile)
	if err != nil {
		return "", c.lines.Errorf("bgp.password_file", "%w", err)
	}
	return password, nil
}

// viewOf returns a graph as the host sees it that has one of these addresses; if one is
// configured, that of IPv4 is it.
func (c *Config) viewOf(g *graph.Graph, own []netip.Addr) (views, error) {
	return c.viewBy(g, own, topology.FromGraph)
}

// heardView is viewOf of what switches tell.
func (c *Config) heardView(g *graph.Graph, own []netip.Addr) (views, error) {
	return c.viewBy(g, own, func(g *graph.Graph, self netip.Addr) (*topology.Topology, error) {
		t, err := topology.FromHeard(g, self, c.labels())
		if err == nil && !reaches(t) {
			err = errors.New("the switches announce no other rack yet")
		}
		return t, err
	})
}

// reaches reports whether there are paths to any rack.
func reaches(t *topology.Topology) bool {
	for edge := range t.Racks() {
		if !t.Paths(0, edge).Direct() {
			return true
		}
	}
	return false
}

func (c *Config) viewBy(g *graph.Graph, own []netip.Addr, from func(*graph.Graph, netip.Addr) (*topology.Topology, error)) (v views, err error) {
	for _, a := range own {
		id, ok := g.ByAddr(a)
		switch {
		case !ok || int(id) >= g.NumHosts():
		case a.Is6() && v.fabric6 == nil:
			if t, err := from(g, a); err == nil { // without IPv6 at the bouncing switches none is carried
				v.fabric6 = t
			}
		case a.Is4() && v.fabric == nil && (!c.Address.IsValid() || a == c.Address):
			if v.fabric, err = from(g, a); err != nil {
				return views{}, err
			}
		}
	}
	if v.fabric == nil {
		return views{}, fmt.Errorf("no host has an IPv4 address of this machine, %v, or address: is another", own)
	}
	return v, nil
}

// checkGraph makes the fabric of a graph.
func (c *Config) checkGraph(g *graph.Graph) (err error) {
	self, err := session.ThisHost("")
	if err == nil {
		c.views, err = c.viewOf(g, self.Addresses)
	}
	if err != nil {
		return c.lines.Errorf("topology", "%s: %w", c.Topology, err)
	}
	return nil
}

// errUnlearned says that the switches have not told enough yet.
var errUnlearned = errors.New("BGP")

// learner hears from the host's switches what the fabric is.
type learner interface {
	fabric(*Config) (views, error) // wraps errUnlearned while too little is known
	changed() <-chan struct{}
	status() *BGPStatus // nil if there is nothing to say
	Close() error
}
