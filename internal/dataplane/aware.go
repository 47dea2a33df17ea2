package dataplane

import (
	"fmt"
	"math/rand/v2"
	"time"

	"weft/conga"
	"weft/flowcell"
	"weft/internal/paths"
	"weft/local"
	"weft/luopan"
	"weft/policy"
	"weft/topology"
)

// aware chooses paths by more than which are live. It belongs to egress, is
// guarded by its lock, and is asked about data only: acknowledgements go by the
// policy's Rule.
type aware interface {
	// choose returns the path of a unit that begins, one of paths, which are live
	// and ascending, a path as often as it weighs. last is the one that the flow's
	// unit before had, -1 if there was none or it is dead.
	choose(p *pair, paths []int, last int, now time.Duration) (path int)
	// sent takes note of bytes that a path carries, headers included.
	sent(p *pair, path, bytes int, now time.Duration)
	// know adds what is known of the paths to each rack, by its edge switch, or to
	// one of its hosts.
	know(now time.Duration, add func(to topology.NodeID, c Congestion))
}

// awareConfig is what a policy needs to be aware. The zero value is of one that is not.
type awareConfig struct {
	policy   policy.Policy
	options  policy.Options
	linkBits float64
	tau      time.Duration
	seed     uint64
	device   PathDevice // nil unless the device chooses
}

func newAwareConfig(c *Config, p policy.Policy) awareConfig {
	if c.Tunnel != nil || p.Aware == policy.Sampled && !c.Samples {
		return awareConfig{}
	}
	a := awareConfig{policy: p, options: c.PolicyOptions, linkBits: c.LinkRateBits, tau: c.Tau, seed: c.Seed}
	if c.UplinkEncapsulates {
		a.device, _ = c.Device.(PathDevice)
	}
	return a
}

// rate is that of a link in bit/s, as well as it is known.
func (c *awareConfig) rate(t *topology.Topology, l topology.LinkID) float64 {
	if r := t.Rate(l); r > 0 {
		return r * 1e6
	}
	return c.linkBits // 0 stands for the same default everywhere
}

// in returns what a policy goes by in a fabric; nil where that is nothing but its
// Rule.
func (c awareConfig) in(t *topology.Topology, self topology.NodeID) (aware, error) {
	seed := rand.NewPCG(c.seed, 0x6177617265)
	switch c.policy.Aware {
	case policy.Sampled:
		table, err := luopan.New(luopan.Config{
			Samples: c.options.Samples, Expiry: c.options.Expiry, RateBits: c.rate(t, uplinkOf(t, self)), Seed: seed.Uint64()})
		return &sampled{table: table, device: c.device}, err
	case policy.Informed:
		table, err := conga.New(conga.Config{Tau: c.tau, RateBits: c.rate(t, uplinkOf(t, self)), Seed: seed.Uint64()})
		return &informed{table: table}, err
	case policy.Backlogged:
		table, err := local.New(local.Config{RateBits: c.rate(t, t.Ports(self)[0].Link), Seed: seed.Uint64()})
		return &backlogged{table: table}, err
	}
	return nil, nil
}

// uplinkOf is one of the links by which packets of a host leave its rack.
func uplinkOf(t *topology.Topology, self topology.NodeID) topology.LinkID {
	ports := t.Ports(paths.EdgeOf(t, self))
	return ports[len(ports)-1].Link // those that lead up are the last
}

// beAware has an egress go by what its policy wants to know.
func (e *Egress) beAware(c awareConfig) error {
	a, err := c.in(e.paths.topo, e.paths.self)
	if err != nil {
		return fmt.Errorf("Policy %s: %w", c.policy.Name, err)
	}
	e.awareConfig = c
	e.adopt(a)
	return nil
}

// adopt replaces what is known, by nothing if a is nil.
func (e *Egress) adopt(a aware) {
	e.aware = a
	e.informed, _ = a.(*informed)
	if e.informed != nil {
		e.flights.on.Store(true)
	}
	if e.sampler != nil {
		var table *luopan.Table
		if s, ok := a.(*sampled); ok {
			table = s.table
		}
		e.sampler.Use(table)
	}
}

// begin returns the path of a unit of data of a flow, nil if none is live; last is
// that of the unit before, or anything else.
func (e *Egress) begin(p *pair, flow *flowcell.FiveTuple, last *pathOut, now time.Duration) *pathOut {
	if e.aware == nil {
		return p.next(&p.of(flow, e.seed).data)
	}
	was := -1
	if p.group.has(last) {
		was = last.index
	}
	g := p.group
	paths := g.components[0].order
	if len(g.components) > 1 {
		paths = g.components[g.component(flow.Hash(e.seed))].order
	}
	path := e.aware.choose(p, paths, was, now)
	if path < 0 || path >= len(g.out) {
		return nil
	}
	return g.out[path]
}

// account tells of data that a path carries in so many segments.
func (e *Egress) account(p *pair, pkt *flowcell.Packet, via *pathOut, payload, segments int, now time.Duration) {
	if e.aware != nil && via != nil {
		e.aware.sent(p, via.index, payload+segments*(pkt.Length-int(pkt.Payload)+via.header.Overhead()), now)
	}
}

// Congestion is what the policy knows, rack by rack.
func (e *Egress) Congestion() (list []Congestion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.aware == nil {
		return nil
	}
	t := e.paths.topo
	e.aware.know(e.clock.Now(), func(id topology.NodeID, c Congestion) {
		edge, host := id, id
		if int(id) < t.NumHosts() {
			edge = paths.EdgeOf(t, id)
		}
		r := e.paths.racks.racks[edge]
		if r == nil {
			return
		}
		n := t.Node(edge)
		c.Rack, c.Prefix = n.Name, paths.PrefixOf(n.Addr)
		if host == edge {
			host = r.host
		} else {
			c.Host = t.Node(host).Name
		}
		set := t.PathsOrAll(e.paths.self, host)
		c.describe(set)
		list = append(list, c)
	})
	return list
}
