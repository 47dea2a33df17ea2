package daemon

import (
	plane "weft/internal/dataplane"
	"weft/internal/event"
	"weft/luopan"
	"weft/policy"
	"weft/stack"
	"weft/topology"
)

// sample answers the samples of peers. Under a policy that samples, it also tells the
// program at the uplink what the host's own samples say.
func (d *daemon) sample(c *Config, t *topology.Topology) error {
	if len(d.place.ways) > 0 {
		d.log.Info(event.Limited, "note: peers whose policy samples paths get no answer from here, as this host has several uplinks")
		return nil
	}
	s, err := d.kernel.sample(c.sampling(d.place, t, d.spray))
	switch {
	case err == nil:
		d.sampler = s
	case c.samples():
		return c.lines.Errorf("policy", "%s: %w", c.Policy, err)
	default:
		d.log.Warnf(event.Limited, "warning: peers whose policy samples paths get no answer from here: %v", err)
	}
	return nil
}

// congestion is what is known of the paths to racks, whoever knows it.
func (d *daemon) congestion() []stack.Congestion {
	if d.sampler != nil && d.config.samples() {
		self, _ := d.topology.ByAddr(d.place.address)
		return racksOf(d.topology, self, d.sampler.Destinations())
	}
	if o, ok := d.spray.(reporter); ok && d.config.offloads() && d.config.policy().Aware == policy.Informed {
		self, _ := d.topology.ByAddr(d.place.address)
		return reportsOf(d.topology, self, o)
	}
	if r, ok := d.receiver.(*hostReceiver); ok {
		if p, ok := r.dataplane.(interface{ Congestion() []stack.Congestion }); ok {
			return p.Congestion()
		}
	}
	return nil
}

func (d *daemon) sampleStatus() *SampleStatus {
	if d.sampler == nil {
		return nil
	}
	s := d.sampler.Stats()
	n := &SampleStatus{
		Sent: s.Sent, Bytes: s.Bytes, Decided: s.Told, Failed: s.Untold, PeersAnswered: s.Answered, PeersRefused: s.Refused,
		Forged: s.Forged, Unasked: s.Unasked, Pathless: s.Pathless, Unsent: s.Unsent, Drops: s.Drops,
	}
	if t := s.Table; d.config.samples() {
		n.Table = &t
	}
	return n
}

// racksOf translates what a Sampler knows. It has no counts of choices, because the program
// makes these.
func racksOf(t *topology.Topology, self topology.NodeID, list []luopan.Destination) (all []stack.Congestion) {
	for _, d := range list {
		edge := topology.NodeID(d.Destination)
		if d.Destination >= uint32(t.NumNodes()) || t.Node(edge).Layer != topology.LayerEdge {
			continue // of another topology
		}
		set := t.PathsOrAll(self, edge)
		c := stack.Congestion{Rack: t.Node(edge).Name, Prefix: t.RackOf(edge), RTT: d.RTT, Expiry: d.Expiry}
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
			p := stack.PathCongestion{Path: path}
			if i, ok := best[path]; ok {
				p = plane.PathOf(d.Samples[i], i == 0)
			}
			p.Bounce, p.Live = set.Addr(path), live[path]
			c.Paths = append(c.Paths, p)
		}
		all = append(all, c)
	}
	return all
}
