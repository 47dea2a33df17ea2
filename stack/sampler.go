package stack

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/luopan"
)

// sampler sends the probes that a policy which samples asks for, and answers those
// of others, whatever the policy. It belongs to egress and is guarded by its lock;
// a timer drives it, and what egress sends.
type sampler struct {
	egress *egress
	table  *luopan.Table // nil unless the policy samples
	self   netip.Addr
	pause  time.Duration // the shortest until the timer expires
	timer  Timer
	armed  time.Duration // for when the timer is set
	send   func(luopan.Probe)
	bufs   [][]byte // one per packet of a batch
	batch  [][]byte
	id     uint16 // outer IPv4 ID
	tokens float64
	last   time.Duration // when tokens was counted
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
	Untold   uint64       `json:"untold"`   // choices that a ChoiceDevice did not take
}

const (
	// maxAnswers is how many probes are answered per second, and a tenth of it at
	// once: those of two hosts that send as many as package luopan lets them.
	maxAnswers = 40_000
	// sampleBatch is the most samples that are written at once.
	sampleBatch = 16
	// leastPause is how soon the timer may expire in real time: sooner, it is late
	// anyway.
	leastPause = 50 * time.Microsecond
)

func newSampler(e *egress, self netip.Addr, real bool) *sampler {
	s := &sampler{egress: e, self: self, tokens: maxAnswers / 10, last: e.clock.Now(), armed: luopan.Never,
		bufs: make([][]byte, sampleBatch), batch: make([][]byte, 0, sampleBatch)}
	s.pause = 1
	if real {
		s.pause = leastPause
	}
	for i := range s.bufs {
		s.bufs[i] = make([]byte, headroom+encap.SampleLen)
	}
	s.send = s.probe
	s.timer = e.clock.AfterFunc(time.Hour, s.tick)
	s.timer.Stop()
	return s
}

// tick is the timer's work.
func (s *sampler) tick() {
	s.egress.mu.Lock()
	defer s.egress.mu.Unlock()
	s.armed = luopan.Never
	s.pump(s.egress.clock.Now())
}

// due reports whether there is something to be sent.
func (s *sampler) due(now time.Duration) bool { return s.table != nil && s.table.Next() <= now }

// pump sends what is due.
func (s *sampler) pump(now time.Duration) {
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
	pair := s.egress.paths.lookup(flowcell.AddressFrom(to))
	if pair.group == nil || p.Path >= len(pair.group.out) || pair.group.out[p.Path] == nil {
		s.stats.Pathless++
		return
	}
	buf := s.buffer()
	inner, err := encap.AppendSample(buf[:headroom], encap.Sample{Path: uint32(p.Path), Token: p.Token, From: s.self, To: to})
	if err != nil {
		s.stats.Pathless++
		return
	}
	s.id++
	if out, err := pair.group.out[p.Path].encapsulate(inner[link.SuperHeadroom:], pair.rack, s.id); err == nil {
		s.stats.Sent++
		s.stats.Bytes += uint64(len(out))
		s.add(inner, out)
	}
}

// receive takes a packet that encap.IsSample takes for one, and may change it.
func (s *sampler) receive(packet []byte) {
	e := s.egress
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.closed {
		return
	}
	now := e.clock.Now()
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
	const burst = maxAnswers / 10
	s.tokens = min(s.tokens+(now-s.last).Seconds()*maxAnswers, burst)
	s.last = now
	if s.tokens < 1 {
		s.stats.Refused++
		return
	}
	path, err := encap.AnswerSample(packet, max(now, 1))
	if err != nil {
		s.stats.Forged++
		return
	}
	set, ok := pathsTo(s.egress.paths.topo, s.self, to)
	if !ok || int(path) >= set.Count() {
		s.stats.Refused++
		return
	}
	s.tokens--
	s.heard(to, now)
	o := outer(s.egress.paths.racks.carrier, s.self, set, int(path))
	inner := append(s.buffer()[:headroom], packet[:encap.SampleLen]...)
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
	topo, host := s.egress.paths.topo, from.As4()
	id, _ := topo.ByAddr(from)
	s.table.Heard(uint32(edgeOf(topo, id)), binary.BigEndian.Uint32(host[:]), now)
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
		s.stats.Drops += uint64(len(s.batch) - writeAll(s.egress.dev, s.egress.super, s.batch))
		s.batch = s.batch[:0]
	}
}

// close ends it.
func (s *sampler) close() {
	s.egress.mu.Lock()
	defer s.egress.mu.Unlock()
	s.closed = true
	s.timer.Stop()
}

func (s *sampler) snapshot() SampleStats {
	s.egress.mu.Lock()
	defer s.egress.mu.Unlock()
	n := s.stats
	if s.table != nil {
		n.Table = s.table.Stats()
	}
	if a, ok := s.egress.aware.(*sampled); ok {
		n.Untold = a.untold
	}
	return n
}
