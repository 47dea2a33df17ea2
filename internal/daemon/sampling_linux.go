package daemon

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"weft/fabric"
	"weft/internal/prober"
	"weft/luopan"
	"weft/stack"
	"weft/topology"
)

// sample has peers' samples answered and, under a policy that samples, the program
// at the uplink told what its own say. The Sampler lives as long as the program
// does, whose it is: neither waits for the daemon's locks.
func (d *daemon) sample(c *Config, t *topology.Topology, o *fabric.Offload) (err error) {
	s := prober.SamplerConfig{
		Interface: d.place.uplink.Name, Gateway: d.place.uplink.Gateway, Address: d.place.address, Topology: t,
		Carrier: c.carrier(), Samples: c.Samples, Expiry: c.Expiry, FlowcellBytes: c.FlowcellBytes, Seed: rand.Uint64(),
	}
	if self, ok := t.ByAddr(d.place.address); ok {
		ports := t.Ports(t.Ports(self)[0].Peer) // of its edge switch; those that lead up are the last
		s.RateBits = t.Rate(ports[len(ports)-1].Link) * 1e6
	}
	if c.samples() {
		s.Active, s.Decide = o.Active, o.Choose
	}
	d.sampler, err = prober.OpenSampler(s)
	if err == nil {
		return nil
	}
	if c.samples() {
		return c.lines.Errorf("policy", "%s: %w", c.Policy, err)
	}
	d.log.Printf("warning: peers whose policy samples paths get no answer from here: %v", err)
	return nil
}

// closeSampler closes the Sampler, if there is one.
func (d *daemon) closeSampler() error {
	s := d.sampler
	d.sampler = nil
	if s == nil {
		return nil
	}
	return s.Close()
}

// congestion is what is known of the paths to racks, whoever knows it.
func (d *daemon) congestion() []stack.Congestion {
	if d.sampler != nil && d.config.samples() {
		return racksOf(d.follower.current(), d.sampler.Self(), d.sampler.Destinations())
	}
	if p, ok := d.dataplane.(interface{ Congestion() []stack.Congestion }); ok {
		return p.Congestion()
	}
	return nil
}

func (d *daemon) sampleStatus() *SampleStatus {
	if d.sampler == nil {
		return nil
	}
	s := d.sampler.Stats()
	n := &SampleStatus{
		Decided: s.Decided, Failed: s.Failed, PeersAnswered: s.Answered, PeersRefused: s.Refused, Unsent: s.Unsent, Drops: s.Drops,
	}
	if t := s.Table; d.config.samples() {
		n.Table = &t
	}
	return n
}

// racksOf translates what a Sampler knows. Of choices it has none to tell, as the
// program makes them.
func racksOf(t *topology.Topology, self topology.NodeID, list []luopan.Destination) (all []stack.Congestion) {
	for _, d := range list {
		edge, ok := edgeAt(t, d.Destination)
		if !ok {
			continue // of another topology
		}
		n := t.Node(edge)
		prefix, _ := n.Addr.Prefix(24)
		set := t.PathsOrAll(self, t.Ports(edge)[0].Peer)
		c := stack.Congestion{Rack: n.Name, Prefix: prefix, RTT: d.RTT, Expiry: d.Expiry}
		best := map[int]int{} // place among the samples, by path
		for i, s := range d.Samples {
			best[s.Path] = i
		}
		if len(best) > 0 {
			c.Metric = d.Metric.String()
		}
		live := map[int]bool{}
		for _, path := range set.Live {
			live[path] = true
		}
		for path := range set.Count() {
			p := stack.PathCongestion{Path: path, Bounce: set.Addr(path), Live: live[path]}
			if i, ok := best[path]; ok {
				s := d.Samples[i]
				p.Known, p.Best, p.Age = true, i == 0, s.Age
				p.Queue, p.Meters, p.Marked, p.RTT, p.Sent = s.Queue, s.Meters, s.Marked, s.RTT, s.Sent
			}
			c.Paths = append(c.Paths, p)
		}
		all = append(all, c)
	}
	return all
}

// edgeAt is the edge switch of the rack whose first address is that number; its
// own is the next (thesis §3.1.2).
func edgeAt(t *topology.Topology, number uint32) (topology.NodeID, bool) {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], number+1)
	id, ok := t.ByAddr(netip.AddrFrom4(a))
	return id, ok && t.Node(id).Layer == topology.LayerEdge
}
