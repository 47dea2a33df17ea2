package dataplane

import (
	"math/rand/v2"
	"slices"
	"time"

	"weft/backlog"
	"weft/conga"
	"weft/encap"
	"weft/flowcell"
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
	// know adds what is known of the paths to each rack, by its edge switch, or, if number
	// is not 0, to the host of a pair.
	know(now time.Duration, add func(edge topology.NodeID, number uint32, c Congestion))
}

// awareConfig is what an aware policy needs. The zero value is that of a policy that
// is not aware.
type awareConfig struct {
	policy  policy.Policy
	options policy.Options
	seed    uint64
	device  chooser // nil unless the device chooses
}

// newAwareConfig returns it. uplink says that the device carries the policy out.
func newAwareConfig(c *Config, p policy.Policy, uplink bool) awareConfig {
	// Of CONGA the program at the uplink has the tables, too.
	if c.Tunnel != nil || p.Aware == policy.Sampled && !c.Samples || uplink && p.Aware == policy.Informed {
		return awareConfig{}
	}
	a := awareConfig{policy: p, options: c.PolicyOptions, seed: c.Seed}
	if uplink {
		a.device, _ = c.Device.(chooser)
	}
	return a
}

// rate returns the rate of a link in bit/s: the topology's, or the configured one. 0
// stands for the default of the packages that ask.
func (c *awareConfig) rate(t *topology.Topology, l topology.LinkID) float64 {
	if r := t.Rate(l); r > 0 {
		return r * 1e6
	}
	return c.options.LinkRateBits // 0 stands for the same default everywhere
}

// in returns what a policy goes by in a fabric; nil if it goes by its Rule alone.
func (c awareConfig) in(t *topology.Topology, self topology.NodeID) (aware, error) {
	seed := rand.NewPCG(c.seed, 0x6177617265)
	switch c.policy.Aware {
	case policy.Sampled:
		table, err := luopan.New(luopan.Config{
			Samples: c.options.Samples, Expiry: c.options.Expiry, SamplesOnly: c.options.SamplesOnly, QueueUnit: encap.QCMUnit, RateBits: c.rate(t, uplinkOf(t, self)), Seed: seed.Uint64()})
		return &sampled{table: table, device: c.device}, err
	case policy.Informed:
		table, err := conga.New(conga.Config{Tau: c.options.Tau, RateBits: c.rate(t, uplinkOf(t, self)), Seed: seed.Uint64()})
		return &informed{table: table}, err
	case policy.Heeding:
		return newHeeding(c.policy, seed.Uint64()), nil
	case policy.Backlogged:
		table, err := backlog.New(backlog.Config{RateBits: c.rate(t, t.Ports(self)[0].Link), Seed: seed.Uint64()})
		return &backlogged{table: table}, err
	}
	return nil, nil
}

// uplinkOf returns one of the links by which a host's packets leave its rack.
func uplinkOf(t *topology.Topology, self topology.NodeID) topology.LinkID {
	ports := t.Ports(t.EdgeOf(self))
	return ports[len(ports)-1].Link // those that lead up are the last
}

// adopt has all go by what the lanes know by now.
func (e *Egress) adopt() {
	var table *luopan.Table
	e.timed = e.conns != nil
	for _, l := range e.lanes {
		e.timed = e.timed || l.aware != nil || l.unit.Cuts()
		if l.informed != nil {
			e.flights.on.Store(true)
		}
		if s, ok := l.aware.(*sampled); ok {
			table = s.table
		}
	}
	e.heed()
	if e.sampler != nil {
		e.sampler.probes.Use(table)
	}
}

// Congestion returns what the policies know, rack by rack; nil if none of them uses
// congestion.
func (e *Egress) Congestion() (list []Congestion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if l.aware != nil {
			list = l.congestion(list, e.clock.Now())
		}
	}
	return list
}

// congestion adds what one policy knows.
func (l *lane) congestion(list []Congestion, now time.Duration) []Congestion {
	t := l.paths.topo
	var hosts map[uint32]*pair
	l.aware.know(now, func(edge topology.NodeID, number uint32, c Congestion) {
		set := t.PathsOrAll(l.paths.self, edge)
		if number != 0 {
			if hosts == nil {
				hosts = l.paths.byNumber()
			}
			p := hosts[number]
			if p == nil {
				return
			}
			table := l.paths.of(p)
			edge, c.Host = p.rack.id, t.HostName(p.host)
			set = table.topo.PathsTo(table.self, p.host).OrAll()
		} else if !slices.ContainsFunc(l.paths.tables(), func(t *pathTable) bool { return t.racks.at(edge) != nil }) {
			return
		}
		c.Rack, c.Prefix = t.Node(edge).Name, t.RackOf(edge)
		c.describe(set)
		list = append(list, c)
	})
	return list
}
