package daemon

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"

	"weft/internal/config"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/learn"
	"weft/topoupdate/bgp/session"
)

// learns reports whether the host learns the fabric from its switches.
func (c *Config) learns() bool { return c.Topology == TopologyBGP && !c.tunnels() }

// checkBGP checks what the sessions need.
func (c *Config) checkBGP() error {
	if c.labels() && c.BGP.SIDBlock == "" {
		return c.lines.Errorf("encapsulation", "srv6 with topology: bgp needs bgp.sid_block, the block that the switches' locators lie in, such as fcbb:bbbb::/32; or use ipip")
	}
	_, err := c.session()
	return err
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

// seen returns those of this machine's addresses as which the host may see the fabric: if one
// is configured, that of IPv4 is it.
func (c *Config) seen(own []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(own), func(a netip.Addr) bool { return a.Is4() && c.Address.IsValid() && a != c.Address })
}

// told is what the views are told by.
func (v views) told() bgp.Views { return bgp.Views{Fabric: v.fabric, Fabric6: v.fabric6} }

// checkGraph makes the fabric of a graph.
func (c *Config) checkGraph(g *graph.Graph) (err error) {
	self, err := session.ThisHost("")
	if err == nil {
		var v bgp.Views
		v, err = bgp.ViewsOf(g, c.seen(self.Addresses))
		c.views = views{v.Fabric, v.Fabric6}
	}
	if err == nil {
		c.inGraph, err = graphBehind(g)
	}
	if err != nil {
		return c.lines.Errorf("topology", "%s: %w", c.Topology, err)
	}
	return nil
}

// learner hears from the host's switches what the fabric is.
type learner interface {
	fabric() (views, error) // wraps learn.ErrUnlearned while too little is known
	changed() <-chan struct{}
	status() *learn.Status // nil if there is nothing to say
	Close() error
}

// bgpLearner is the learner of real sessions.
type bgpLearner struct{ *learn.Learner }

// learnBy opens the sessions. The host's router ID is its address, or its first one.
func learnBy(c *Config) (learner, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	s.RouterID = c.Address
	l, err := learn.Listen(learn.Options{Config: s, See: c.seen, SIDs: c.labels(), Ports: c.portsTo(s.Neighbors)})
	return bgpLearner{l}, err
}

func (l bgpLearner) changed() <-chan struct{} { return l.Changed() }

func (l bgpLearner) status() *learn.Status { return l.Status() }

// fabric returns what the switches tell of now.
func (l bgpLearner) fabric() (views, error) {
	v, err := l.Views()
	return views{v.Fabric, v.Fabric6}, err
}

// portsTo returns what names the host's ports by the devices that lead to its switches: those
// of uplink, or those that the kernel's routes led to when a session was there, which has to be
// on the link. nil: the host has one switch.
func (c *Config) portsTo(neighbors []session.Neighbor) func(graph.Spec, []netip.Addr) {
	if len(neighbors) < 2 {
		return nil
	}
	known := make([]string, len(neighbors))
	if len(c.Uplink) > 1 {
		copy(known, c.Uplink)
	}
	return func(spec graph.Spec, missing []netip.Addr) {
		devices := make(map[string]string) // by switch
		for i, n := range neighbors {
			if known[i] == "" && !slices.Contains(missing, n.Addr) {
				known[i] = deviceTo(n.Addr)
			}
			devices[bgp.NameOf(n.AS)] = known[i]
		}
		if len(slices.Compact(slices.Sorted(maps.Values(devices)))) < len(devices) {
			return // they are on one link
		}
		for i := range spec.Links {
			if k := &spec.Links[i]; k.Ends[0] == spec.Nodes[0].Name {
				k.Ports[0] = devices[k.Ends[1]]
			}
		}
	}
}
