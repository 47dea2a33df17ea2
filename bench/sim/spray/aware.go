package spray

import (
	"time"

	"weft/backlog"
	"weft/conga"
	"weft/policy"
	"weft/topology"
)

// aware chooses paths of data by congestion. Acknowledgements follow the policy's Rule.
type aware interface {
	// choose returns the path of a unit of f that begins, one of order. last is that of
	// the flow's unit before, -1 if there was none or it is dead.
	choose(f *Flow, p *pair, order []int, last int, now time.Duration) int
	// sent adds bytes that a path carries.
	sent(p *pair, path, bytes int, now time.Duration)
}

func (h *Hosts) beAware() (err error) {
	switch h.policy.Aware {
	case policy.Sampled:
		h.sampled, err = newSampled(h)
		h.aware = h.sampled
	case policy.Informed:
		h.marking, err = newInformed(h)
		h.aware = h.marking
	case policy.Heeding:
		h.heeding = newHeeding(h)
		h.aware = h.heeding
	case policy.Backlogged:
		h.aware, err = newBacklogged(h)
	}
	return err
}

// rateBits is that of a link in bits a second.
func rateBits(t *topology.Topology, l topology.LinkID) float64 { return t.Rate(l) * 1e6 }

// backlogged chooses by what a host has sent itself (DRILL §3.2).
type backlogged struct {
	shape  shape
	tables []*backlog.Table // by host
}

func newBacklogged(h *Hosts) (*backlogged, error) {
	b := &backlogged{shape: h.shape, tables: make([]*backlog.Table, h.shape.hosts)}
	for i := range b.tables {
		var err error
		b.tables[i], err = backlog.New(backlog.Config{
			RateBits: rateBits(h.topo, topology.LinkID(i)), Seed: mix(h.config.Seed, uint64(i))})
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *backlogged) choose(_ *Flow, p *pair, order []int, _ int, now time.Duration) int {
	return b.tables[p.src].Choose(uint32(b.shape.edgeOf(p.dst)), order, now)
}

func (b *backlogged) sent(p *pair, path, bytes int, now time.Duration) {
	b.tables[p.src].Sent(uint32(b.shape.edgeOf(p.dst)), path, bytes, now)
}

// informed chooses by what receivers report (CONGA §3).
type informed struct {
	shape  shape
	tables []*conga.Table // by host
}

func newInformed(h *Hosts) (*informed, error) {
	s := &informed{shape: h.shape, tables: make([]*conga.Table, h.shape.hosts)}
	for i := range s.tables {
		up := h.shape.uplink(h.shape.edgeOf(topology.NodeID(i))) + topology.LinkID(h.shape.ups-1)
		var err error
		s.tables[i], err = conga.New(conga.Config{
			Tau: h.config.Tau, RateBits: rateBits(h.topo, up), Seed: mix(h.config.Seed, uint64(i))})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// rack is what tables call a host's.
func (s *informed) rack(host topology.NodeID) uint32 { return uint32(s.shape.edgeOf(host)) }

func (s *informed) choose(_ *Flow, p *pair, order []int, last int, now time.Duration) int {
	tags := p.paths.Tags
	return s.tables[p.src].Choose(s.rack(p.dst), order, func(path int) uint8 { return tags[path] }, last, now)
}

func (s *informed) sent(p *pair, path, bytes int, now time.Duration) {
	s.tables[p.src].Sent(p.paths.Tags[path], bytes, now)
}
