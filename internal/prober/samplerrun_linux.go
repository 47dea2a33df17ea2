package prober

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/paths"
	"weft/luopan"
	"weft/topology"
)

const (
	// shortestNap is what timers of a host can do.
	shortestNap = 50 * time.Microsecond
	// How often it is asked where traffic goes: while there is some, and else.
	lookBusy, lookCalm = 2 * time.Millisecond, 20 * time.Millisecond
)

// run sends what is due.
func (s *Sampler) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
		case <-s.wake:
		}
		s.mu.Lock()
		s.table.Probes(s.now(), s.probe)
		next := s.table.Next()
		s.mu.Unlock()
		if next == luopan.Never {
			timer.Stop()
			continue
		}
		timer.Reset(max(next-s.now(), shortestNap))
	}
}

// lookAround tells the table to which racks there is traffic.
func (s *Sampler) lookAround() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		busy := false
		err := s.config.Active(func(prefix netip.Prefix, host netip.Addr, flowcells uint64) {
			busy = true
			s.active(prefix, host, flowcells)
		})
		if err != nil {
			s.mu.Lock()
			s.stats.Failed++
			s.mu.Unlock()
		}
		if busy {
			s.nudge()
			timer.Reset(lookBusy)
		} else {
			timer.Reset(lookCalm)
		}
	}
}

// active takes note of flowcells to a rack. They count as sent by the path decided
// on, and as full, so that too many rather than too few take other paths.
func (s *Sampler) active(prefix netip.Prefix, host netip.Addr, flowcells uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !host.Is4() || prefix != rackOf(host) {
		return
	}
	n := number(prefix)
	r := s.racks[n]
	if r == nil {
		id, ok := s.topology.ByAddr(host)
		if !ok || int(id) >= s.topology.NumHosts() {
			return
		}
		r = &rack{prefix: prefix, paths: s.topology.Paths(s.self, id), decided: -1}
		s.racks[n] = r
	}
	if len(r.paths.Live) < 2 {
		return
	}
	now := s.now()
	s.table.Sent(n, r.decided, int(min(flowcells, 1<<20))*s.config.FlowcellBytes)
	s.table.Choose(n, four(host), r.paths.Live, now)
	s.decide(n, r, now)
}

// decide passes on what the table says of a rack, if that has changed.
func (s *Sampler) decide(n uint32, r *rack, now time.Duration) {
	path, until, ok := s.table.Best(n, now)
	switch {
	case ok && path == r.decided && until == r.until:
		return
	case !ok && now >= r.until: // random already
		r.decided = -1
		return
	case !ok:
		path, until = r.decided, now // any path will do, if only it is valid for no time
	}
	err := s.config.Decide(r.prefix, path, until-now)
	switch {
	case err != nil:
		s.stats.Failed++
		path, until = -1, now
	case !ok:
		path = -1
	default:
		s.stats.Decided++
	}
	r.decided, r.until = path, until
}

// probe is called with the lock held.
func (s *Sampler) probe(p luopan.Probe) {
	r := s.racks[p.Destination]
	if r == nil || p.Path >= r.paths.Count() {
		return // of a topology that is gone
	}
	var host [4]byte
	binary.BigEndian.PutUint32(host[:], p.Host)
	var room [encap.MaxOverhead + encap.SampleLen]byte
	b, err := encap.AppendSample(room[:encap.MaxOverhead], encap.Sample{Path: uint32(p.Path), Token: p.Token,
		From: s.config.Address, To: netip.AddrFrom4(host)})
	if err != nil {
		s.stats.Unsent++
		return
	}
	s.post(b, r.paths, p.Path)
}

// post sends an inner packet, behind room for the outer header, by a path.
func (s *Sampler) post(b []byte, set topology.PathSet, path int) {
	outer, err := paths.OuterBy(s.config.Carrier, s.config.Address, set.Addr(path), set.Choices(path))
	if err == nil {
		s.id++
		b, err = outer.Encapsulate(b, s.id)
	}
	if err == nil {
		s.bufs[0] = b
		_, err = s.socket.Write(s.bufs[:], 0)
	}
	if err != nil {
		s.stats.Unsent++
	}
}

// receive takes what comes in until the socket is closed.
func (s *Sampler) receive() {
	const batch = 32
	bufs, sizes := make([][]byte, batch), make([]int, batch)
	for i := range bufs {
		bufs[i] = make([]byte, encap.MaxOverhead+256)
	}
	for {
		n, err := s.socket.Read(bufs, sizes, encap.MaxOverhead)
		s.mu.Lock()
		now := s.now()
		for i := range n {
			s.take(bufs[i][:encap.MaxOverhead+sizes[i]], now)
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			s.err = err
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
		s.nudge()
	}
}

// take looks at a packet, behind room for an outer header.
func (s *Sampler) take(buf []byte, now time.Duration) {
	is, err := encap.ParseSample(buf[encap.MaxOverhead:])
	switch {
	case err != nil:
		s.stats.Refused++
	case is.ACK:
		s.answered(is, now)
	default:
		s.answer(buf, is, now)
	}
}

func (s *Sampler) answered(is encap.Sample, now time.Duration) {
	a := luopan.Answer{Token: is.Token, Path: int(is.Path), Queue: is.Queue, Meters: is.Meters, Marked: is.Marked, Received: is.Received}
	if !s.table.Answer(a, four(is.From), now) {
		return
	}
	n := number(rackOf(is.From))
	if r := s.racks[n]; r != nil {
		s.decide(n, r, now)
	}
}

// answer sends a peer's sample back by its path.
func (s *Sampler) answer(buf []byte, is encap.Sample, now time.Duration) {
	origin, ok := s.topology.ByAddr(is.From)
	if !ok || int(origin) >= s.topology.NumHosts() || origin == s.self || !s.echoes.Take(1, now) {
		s.stats.Refused++
		return
	}
	paths := s.topology.Whole().Paths(s.self, origin)
	if int(is.Path) >= paths.Count() {
		s.stats.Refused++
		return
	}
	if _, err := encap.AnswerSample(buf[encap.MaxOverhead:], now); err != nil {
		s.stats.Refused++
		return
	}
	s.table.Heard(number(rackOf(is.From)), four(is.From), now)
	s.stats.Answered++
	s.post(buf[:encap.MaxOverhead+encap.SampleLen], paths, int(is.Path))
}
