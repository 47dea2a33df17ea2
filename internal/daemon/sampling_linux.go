package daemon

import (
	"encoding/binary"
	"net/netip"

	"weft/luopan"
	"weft/stack"
	"weft/topology"
)

// congestion is what is known of the paths to racks, whoever knows it.
func (d *daemon) congestion() []stack.Congestion {
	if d.sampler != nil && d.config.samples() {
		return racksOf(d.topology, d.sampler.Self(), d.sampler.Destinations())
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
		Decided: s.Decided, Failed: s.Failed, PeersAnswered: s.Answered, PeersRefused: s.Refused, Unsent: s.Unsent, Drops: s.Drops,
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
		edge, ok := edgeAt(t, d.Destination)
		if !ok {
			continue // of another topology
		}
		set := t.PathsOrAll(self, t.FirstHost(edge))
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

// edgeAt is the edge switch of the rack whose first address is that number.
func edgeAt(t *topology.Topology, number uint32) (topology.NodeID, bool) {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], number)
	return t.RackAt(netip.AddrFrom4(a))
}
