package probe

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/luopan"
	"weft/topology"
)

// SamplerConfig is what a Sampler has of its caller. All but Answers is needed. The
// functions are called by the Sampler's methods and must not call these.
type SamplerConfig struct {
	// Address is the host's own in the fabric.
	Address netip.Addr
	// Answers bounds the probes of peers that are answered, so that nobody makes this
	// host send without bound. The zero value means AnswerRate a second.
	Answers bucket.Bucket
	// Encapsulate writes the outer header of a path in use to a host before the inner
	// packet, which lies in buf behind encap.MaxOverhead bytes of room. It returns buf from
	// the header on, or false if no such path is in use. id is for the header's IPv4 ID.
	Encapsulate func(buf []byte, to netip.Addr, path int, id uint16) (packet []byte, ok bool)
	// Outer returns the outer header of a path to a host, in use or not; false if the
	// fabric has no such host or path, or packets to there need none.
	Outer func(to netip.Addr, path int) (o encap.Outer, ok bool)
	// Rack returns the edge switch of a host's rack; false if it is in none. The number of
	// the switch is the rack's in the Table. See topology.Topology.RackAt.
	Rack func(host netip.Addr) (edge topology.NodeID, ok bool)
	// Write sends a whole packet, outer header included, which is the caller's until it
	// returns. An error says that the packet is not sent.
	Write func(packet []byte) error
}

const (
	// AnswerRate is how many probes of peers are answered a second unless SamplerConfig
	// says otherwise: those of two hosts that send as many as package luopan lets them.
	AnswerRate = 40_000
	// answerBurst is how far ahead of their rate answers may run.
	answerBurst = 100 * time.Millisecond
)

// Sampler drives a luopan.Table: it puts the Table's probes into packets that take their
// paths and hands it the answers. It answers the probes of peers, with a Table or
// without. Times count from any start on and do not go back. It is not safe for
// concurrent use.
type Sampler struct {
	config SamplerConfig
	table  *luopan.Table // nil: nothing is sampled
	send   func(luopan.Probe)
	id     uint16 // outer IPv4 ID
	buf    [encap.MaxOverhead + encap.SampleLen]byte
	stats  SampleStats
}

// SampleStats counts what is done to measure how congested paths are. The probes, and
// what became of their answers, are Table's. A Sampler does not count Drops, Told and
// Untold: they are its owner's.
type SampleStats struct {
	Table    luopan.Stats `json:"table"`    // zero unless the policy samples
	Sent     uint64       `json:"sent"`     // probes that were written
	Bytes    uint64       `json:"bytes"`    // of these, outer headers included
	Answered uint64       `json:"answered"` // probes of others
	Refused  uint64       `json:"refused"`  // probes of others, not answered: too many, or by no path between the two
	Forged   uint64       `json:"forged"`   // samples that are none, by their checksum or what they say
	Unasked  uint64       `json:"unasked"`  // answers, while the policy does not sample
	Pathless uint64       `json:"pathless"` // probes of paths that were gone by then
	Unsent   uint64       `json:"unsent"`   // probes and answers that could not be written
	Drops    uint64       `json:"drops"`    // probes and answers that the device or the socket had no room for
	Told     uint64       `json:"told"`     // choices that the program at the uplink was told
	Untold   uint64       `json:"untold"`   // choices that it did not take, and times that it could not be asked
}

// NewSampler returns a Sampler without a Table: it answers peers.
func NewSampler(c SamplerConfig) *Sampler {
	if c.Answers.None() {
		c.Answers = bucket.New(AnswerRate, answerBurst)
	}
	s := &Sampler{config: c}
	s.send = s.probe
	return s
}

// Use has the Sampler send the probes of a table and hand it the answers. nil ends that.
// The destinations of the table are the numbers of edge switches.
func (s *Sampler) Use(table *luopan.Table) { s.table = table }

// Next is when Pump is to be called again, or luopan.Never. Take brings it forward, and
// so does a call of the table.
func (s *Sampler) Next() time.Duration {
	if s.table == nil {
		return luopan.Never
	}
	return s.table.Next()
}

// Due reports whether Pump has something to send.
func (s *Sampler) Due(now time.Duration) bool { return s.table != nil && s.table.Next() <= now }

// Pump sends the probes that are due.
func (s *Sampler) Pump(now time.Duration) {
	if s.table != nil {
		s.table.Probes(now, s.send)
	}
}

// probe sends one, in the outer header that data by its path has.
func (s *Sampler) probe(p luopan.Probe) {
	var host [4]byte
	binary.BigEndian.PutUint32(host[:], p.Host)
	to := netip.AddrFrom4(host)
	inner, err := encap.AppendSample(s.buf[:encap.MaxOverhead], encap.Sample{Path: uint32(p.Path), Token: p.Token, From: s.config.Address, To: to})
	if err != nil {
		s.stats.Pathless++
		return
	}
	s.id++
	packet, ok := s.config.Encapsulate(inner, to, p.Path, s.id)
	if !ok {
		s.stats.Pathless++
		return
	}
	if s.write(packet) {
		s.stats.Sent++
		s.stats.Bytes += uint64(len(packet))
	}
}

// Take takes a packet from the fabric, without its outer header, that claims to be a
// sample: a peer's probe, or the answer to one of the table's. learned says that the
// table knows more of paths to a rack than before, which is that of edge. Take neither
// changes the packet nor keeps anything of it.
func (s *Sampler) Take(packet []byte, now time.Duration) (edge topology.NodeID, learned bool) {
	m, err := encap.ParseSample(packet)
	switch {
	case err != nil:
		s.stats.Forged++
	case !m.ACK:
		s.answer(packet, m, now)
	case s.table == nil:
		s.stats.Unasked++
	case s.table.Answer(luopan.Answer{Token: m.Token, Path: int(m.Path), Queue: m.Queue, Meters: m.Meters,
		Marked: m.Marked, Received: m.Received}, Number(m.From), now):
		return s.config.Rack(m.From)
	}
	return 0, false
}

// answer sends a probe back by the path by which it has come, in use or not: a path has
// the same number in both directions. Only what is answered counts against the bound.
func (s *Sampler) answer(packet []byte, m encap.Sample, now time.Duration) {
	if s.config.Answers.Ready(1) > now {
		s.stats.Refused++
		return
	}
	o, ok := s.config.Outer(m.From, int(m.Path))
	if !ok {
		s.stats.Refused++
		return
	}
	inner := append(s.buf[:encap.MaxOverhead], packet[:encap.SampleLen]...)
	if _, err := encap.AnswerSample(inner[encap.MaxOverhead:], max(now, 1)); err != nil {
		s.stats.Forged++
		return
	}
	s.config.Answers.Take(1, now)
	s.heard(m.From, now)
	s.id++
	out, err := o.Encapsulate(inner, s.id)
	if err != nil {
		s.stats.Unsent++
		return
	}
	s.stats.Answered++
	s.write(out)
}

// heard tells the table that a host samples, too, so that it answers.
func (s *Sampler) heard(from netip.Addr, now time.Duration) {
	if s.table == nil {
		return
	}
	if edge, ok := s.config.Rack(from); ok {
		s.table.Heard(uint32(edge), Number(from), now)
	}
}

func (s *Sampler) write(packet []byte) bool {
	if err := s.config.Write(packet); err != nil {
		s.stats.Unsent++
		return false
	}
	return true
}

// Stats returns the counters.
func (s *Sampler) Stats() SampleStats {
	n := s.stats
	if s.table != nil {
		n.Table = s.table.Stats()
	}
	return n
}

// Number is what a luopan.Table calls a host with an IPv4 address.
func Number(host netip.Addr) uint32 {
	b := host.As4()
	return binary.BigEndian.Uint32(b[:])
}
