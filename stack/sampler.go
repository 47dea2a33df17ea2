package stack

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/dataplane"
	"weft/link"
	"weft/luopan"
)

// sampler sends the probes that a policy which samples asks for, and answers those
// of others, whatever the policy. It belongs to egress and is guarded by its lock;
// a timer drives it, and what egress sends.
type sampler struct {
	egress *dataplane.Egress
	table  *luopan.Table // nil unless the policy samples
	self   netip.Addr
	pause  time.Duration // the shortest until the timer expires
	timer  Timer
	armed  time.Duration // for when the timer is set
	send   func(luopan.Probe)
	bufs   [][]byte // one per packet of a batch
	batch  [][]byte
	id     uint16        // outer IPv4 ID
	budget bucket.Bucket // of answers
	closed bool
	stats  SampleStats
}

// SampleStats counts what a Host does to measure how congested paths are. The
// probes, and what became of their answers, are Table's.
type SampleStats struct {
	Table    luopan.Stats `json:"table"`    // zero unless the policy samples
	Sent     uint64       `json:"sent"`     // probes that the device has taken
	Bytes    uint64       `json:"bytes"`    // of these, outer headers included
	Answered uint64       `json:"answered"` // probes of others
	Refused  uint64       `json:"refused"`  // probes of others, not answered: too many, or by no path between the two
	Forged   uint64       `json:"forged"`   // samples that are none, by their checksum or what they say
	Unasked  uint64       `json:"unasked"`  // answers, while the policy does not sample
	Drops    uint64       `json:"drops"`    // probes and answers that the device did not take
	Pathless uint64       `json:"pathless"` // probes of paths that were gone by then
	Untold   uint64       `json:"untold"`   // choices that a PathDevice did not take
}

const (
	// maxAnswers is how many probes are answered per second, and what comes in a tenth
	// of one at once: those of two hosts that send as many as package luopan lets them.
	maxAnswers = 40_000
	// sampleBatch is the most samples that are written at once.
	sampleBatch = 16
	// leastPause is how soon the timer may expire in real time: sooner, it is late
	// anyway.
	leastPause = 50 * time.Microsecond
)

func newSampler(e *dataplane.Egress, self netip.Addr, real bool) *sampler {
	s := &sampler{egress: e, self: self, budget: bucket.New(maxAnswers, 100*time.Millisecond), armed: luopan.Never,
		bufs: make([][]byte, sampleBatch), batch: make([][]byte, 0, sampleBatch)}
	s.pause = 1
	if real {
		s.pause = leastPause
	}
	for i := range s.bufs {
		s.bufs[i] = make([]byte, dataplane.Headroom+encap.SampleLen)
	}
	s.send = s.probe
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

// Use implements Sampler.
func (s *sampler) Use(table *luopan.Table) { s.table = table }

// Due reports whether there is something to be sent.
func (s *sampler) Due(now time.Duration) bool { return s.table != nil && s.table.Next() <= now }

// Pump sends what is due.
func (s *sampler) Pump(now time.Duration) {
	if s.closed || s.table == nil {
		return
	}
	s.table.Probes(now, s.send)
	s.flush()
	s.arm(now)
}

// arm has the timer expire when something is due.
func (s *sampler) arm(now time.Duration) {
	next := s.table.Next()
	if next == s.armed {
		return
	}
	if s.armed = next; next == luopan.Never {
		s.timer.Stop()
		return
	}
	s.timer.Reset(max(next-now, s.pause))
}

// probe sends one, in the outer header that data by its path has.
func (s *sampler) probe(p luopan.Probe) {
	var host [4]byte
	binary.BigEndian.PutUint32(host[:], p.Host)
	to := netip.AddrFrom4(host)
	buf := s.buffer()
	inner, err := encap.AppendSample(buf[:dataplane.Headroom], encap.Sample{Path: uint32(p.Path), Token: p.Token, From: s.self, To: to})
	if err != nil {
		s.stats.Pathless++
		return
	}
	s.id++
	out, ok := s.egress.EncapsulateLocked(inner[link.SuperHeadroom:], to, p.Path, s.id)
	if !ok {
		s.stats.Pathless++
		return
	}
	s.stats.Sent++
	s.stats.Bytes += uint64(len(out))
	s.add(inner, out)
}

// receive takes a packet that encap.IsSample takes for one, and may change it.
func (s *sampler) receive(packet []byte) {
	s.egress.Lock()
	defer s.egress.Unlock()
	if s.closed {
		return
	}
	now := s.egress.Clock().Now()
	m, err := encap.ParseSample(packet)
	switch {
	case err != nil:
		s.stats.Forged++
	case !m.ACK:
		s.answer(packet, m.From, now)
	case s.table == nil:
		s.stats.Unasked++
	default:
		from := m.From.As4()
		s.table.Answer(luopan.Answer{Token: m.Token, Path: int(m.Path), Queue: m.Queue, Meters: m.Meters,
			Marked: m.Marked, Received: m.Received}, binary.BigEndian.Uint32(from[:]), now)
		s.arm(now)
	}
}

// answer sends a probe back by the path by which it has come: a path has the same
// number in both directions.
func (s *sampler) answer(packet []byte, to netip.Addr, now time.Duration) {
	if s.budget.Ready(1) > now {
		s.stats.Refused++
		return
	}
	path, err := encap.AnswerSample(packet, max(now, 1))
	if err != nil {
		s.stats.Forged++
		return
	}
	o, ok := s.egress.OuterLocked(to, int(path))
	if !ok {
		s.stats.Refused++
		return
	}
	s.budget.Take(1, now)
	s.heard(to, now)
	inner := append(s.buffer()[:dataplane.Headroom], packet[:encap.SampleLen]...)
	s.id++
	if out, err := o.Encapsulate(inner[link.SuperHeadroom:], s.id); err == nil {
		s.stats.Answered++
		s.add(inner, out)
		s.flush()
	}
}

// heard tells the table that a host of the topology samples, too.
func (s *sampler) heard(from netip.Addr, now time.Duration) {
	if s.table == nil {
		return
	}
	topo, _ := s.egress.TopologyLocked()
	host := from.As4()
	id, _ := topo.ByAddr(from)
	s.table.Heard(uint32(topo.EdgeOf(id)), binary.BigEndian.Uint32(host[:]), now)
	s.arm(now)
}

func (s *sampler) buffer() []byte { return s.bufs[len(s.batch)] }

// add puts a packet, the end of buf, into the batch.
func (s *sampler) add(buf, packet []byte) {
	s.batch = append(s.batch, buf[len(buf)-len(packet)-link.SuperHeadroom:])
	if len(s.batch) == sampleBatch {
		s.flush()
	}
}

func (s *sampler) flush() {
	if len(s.batch) > 0 {
		s.stats.Drops += uint64(len(s.batch) - s.egress.WriteLocked(s.batch))
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
	n := s.stats
	if s.table != nil {
		n.Table = s.table.Stats()
	}
	n.Untold = s.egress.UntoldLocked()
	return n
}
