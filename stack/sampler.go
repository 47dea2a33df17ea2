package stack

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/dataplane"
	"weft/internal/probe"
	"weft/link"
	"weft/luopan"
)

// SampleStats counts what a Host does to measure how congested paths are. The probes,
// and what became of their answers, are Table's.
type SampleStats = probe.SampleStats

// sampler runs a probe.Sampler, which sends the probes that a policy which samples asks
// for and answers those of others, whatever the policy. It belongs to egress and is
// guarded by its lock; a timer drives it, and what egress sends.
type sampler struct {
	*probe.Sampler
	egress *dataplane.Egress
	pause  time.Duration // the shortest until the timer expires
	timer  Timer
	armed  time.Duration // for when the timer is set
	bufs   [][]byte      // one per packet of a batch
	batch  [][]byte      // packets behind link.SuperHeadroom
	drops  uint64
	closed bool
}

const (
	// sampleBatch is the most samples that are written at once.
	sampleBatch = 16
	// leastPause is how soon the timer may expire in real time: sooner, it is late
	// anyway.
	leastPause = 50 * time.Microsecond
)

func newSampler(e *dataplane.Egress, self netip.Addr, real bool) *sampler {
	s := &sampler{egress: e, armed: luopan.Never, bufs: make([][]byte, sampleBatch), batch: make([][]byte, 0, sampleBatch)}
	s.pause = 1
	if real {
		s.pause = leastPause
	}
	for i := range s.bufs {
		s.bufs[i] = make([]byte, link.SuperHeadroom, dataplane.Headroom+encap.SampleLen)
	}
	s.Sampler = probe.NewSampler(probe.SamplerConfig{
		Address: self, Encapsulate: e.EncapsulateLocked, Outer: e.OuterLocked, Rack: e.RackLocked, Write: s.add,
	})
	s.timer = e.Clock().AfterFunc(time.Hour, s.tick)
	s.timer.Stop()
	return s
}

// tick is the timer's work.
func (s *sampler) tick() {
	s.egress.Lock()
	defer s.egress.Unlock()
	s.armed = luopan.Never
	s.Pump(s.egress.Clock().Now())
}

// Pump sends what is due.
func (s *sampler) Pump(now time.Duration) {
	if s.closed {
		return
	}
	s.Sampler.Pump(now)
	s.flush()
	s.arm(now)
}

// arm has the timer expire when something is due.
func (s *sampler) arm(now time.Duration) {
	next := s.Next()
	if next == s.armed {
		return
	}
	if s.armed = next; next == luopan.Never {
		s.timer.Stop()
		return
	}
	s.timer.Reset(max(next-now, s.pause))
}

// receive takes a packet that encap.IsSample takes for one.
func (s *sampler) receive(packet []byte) {
	s.egress.Lock()
	defer s.egress.Unlock()
	if s.closed {
		return
	}
	now := s.egress.Clock().Now()
	s.Take(packet, now)
	s.flush()
	s.arm(now)
}

// add copies a packet into the batch.
func (s *sampler) add(packet []byte) error {
	s.batch = append(s.batch, append(s.bufs[len(s.batch)], packet...))
	if len(s.batch) == sampleBatch {
		s.flush()
	}
	return nil
}

func (s *sampler) flush() {
	if len(s.batch) > 0 {
		s.drops += uint64(len(s.batch) - s.egress.WriteLocked(s.batch))
		s.batch = s.batch[:0]
	}
}

// close ends it.
func (s *sampler) close() {
	s.egress.Lock()
	defer s.egress.Unlock()
	s.closed = true
	s.timer.Stop()
}

func (s *sampler) snapshot() SampleStats {
	s.egress.Lock()
	defer s.egress.Unlock()
	n := s.Stats()
	n.Drops = s.drops
	n.Told, n.Untold = s.egress.ToldLocked()
	return n
}
