package dataplane

import (
	"fmt"
	"math/rand/v2"
	"time"

	"weft/conga"
	"weft/flowcell"
	"weft/local"
	"weft/luopan"
	"weft/policy"
	"weft/topology"
)

// aware chooses the paths of data by more than which are live. It belongs to egress
// and is guarded by its lock. Acknowledgements go by the policy's Rule.
type aware interface {
	// choose returns the path of a unit that begins with pkt. It is one of paths: the
	// live ones, ascending, each as often as it weighs. last is the path of the flow's
	// unit before; -1 if there was none, or it is dead.
	choose(p *pair, pkt *flowcell.Packet, paths []int, last int, now time.Duration) (path int)
	// sent takes note of bytes that a path carries, headers included.
	sent(p *pair, path, bytes int, now time.Duration)
	// know adds what is known of the paths to each rack, by its edge switch, or to
	// one of its hosts.
	know(now time.Duration, add func(to topology.NodeID, c Congestion))
}

// awareConfig is what an aware policy needs. The zero value is that of a policy that
// is not aware.
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

// rate returns the rate of a link in bit/s: the topology's, or the configured one. 0
// stands for the default of the packages that ask.
func (c *awareConfig) rate(t *topology.Topology, l topology.LinkID) float64 {
	if r := t.Rate(l); r > 0 {
		return r * 1e6
	}
	return c.linkBits // 0 stands for the same default everywhere
}

// in returns what a policy goes by in a fabric; nil if it goes by its Rule alone.
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
	case policy.Heeding:
		return newHeeding(c.policy, seed.Uint64()), nil
	case policy.Backlogged:
		table, err := local.New(local.Config{RateBits: c.rate(t, t.Ports(self)[0].Link), Seed: seed.Uint64()})
		return &backlogged{table: table}, err
	}
	return nil, nil
}

// uplinkOf returns one of the links by which a host's packets leave its rack.
func uplinkOf(t *topology.Topology, self topology.NodeID) topology.LinkID {
	ports := t.Ports(t.EdgeOf(self))
	return ports[len(ports)-1].Link // those that lead up are the last
}

// beAware makes an egress go by what its policy wants to know.
func (e *Egress) beAware(c awareConfig) error {
	a, err := c.in(e.paths.topo, e.paths.self)
	if err != nil {
		return fmt.Errorf("Policy %s: %w", c.policy.Name, err)
	}
	e.awareConfig = c
	e.adopt(a)
	return nil
}

// adopt replaces what is known by a; nil makes the egress go by the policy's Rule.
func (e *Egress) adopt(a aware) {
	e.aware = a
	e.informed, _ = a.(*informed)
	e.heed(a)
	if e.informed != nil || e.heeding != nil {
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

// Congestion returns what the policy knows, rack by rack; nil if it does not look at
// congestion.
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
			edge = t.EdgeOf(id)
		}
		r := e.paths.racks.racks[edge]
		if r == nil {
			return
		}
		n := t.Node(edge)
		c.Rack, c.Prefix = n.Name, t.RackOf(edge)
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
