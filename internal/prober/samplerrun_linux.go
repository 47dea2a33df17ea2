package prober

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
	"weft/internal/paths"
	"weft/internal/probe"
	"weft/topology"
)

// How often it is asked where traffic goes: while there is some, and else.
const lookBusy, lookCalm = 2 * time.Millisecond, 20 * time.Millisecond

// tick sends what is due.
func (s *Sampler) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.alarm.Rang()
	s.sampler.Pump(s.clock.Now())
	s.alarm.Set(s.sampler.Next())
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
		s.mu.Lock()
		if err != nil {
			s.untold++
		}
		s.alarm.Set(s.sampler.Next())
		s.mu.Unlock()
		if busy {
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
	edge, ok := s.rackOf(host)
	if !ok || !slices.Contains(s.topology.RackPrefixesOf(edge, false), prefix) {
		return
	}
	r := s.racks[edge]
	if r == nil {
		self, here := s.topology.ByAddr(s.config.Address)
		if !here {
			return
		}
		r = &rack{prefixes: s.topology.RackPrefixesOf(edge, false), paths: s.topology.Paths(self, edge), decided: -1}
		s.racks[edge] = r
	}
	if len(r.paths.Live) < 2 {
		return
	}
	now := s.clock.Now()
	s.table.Sent(uint32(edge), r.decided, int(min(flowcells, 1<<20))*s.config.FlowcellBytes)
	s.table.Choose(uint32(edge), probe.Number(host), r.paths.Live, now)
	s.decide(edge, r, now)
}

// decide passes on what the table says of a rack, if that has changed.
func (s *Sampler) decide(edge topology.NodeID, r *rack, now time.Duration) {
	path, until, ok := s.table.Best(uint32(edge), now)
	switch {
	case ok && path == r.decided && until == r.until:
		return
	case !ok && now >= r.until: // random already
		r.decided = -1
		return
	case !ok:
		path, until = r.decided, now // any path will do, if only it is valid for no time
	}
	var err error
	for _, prefix := range r.prefixes {
		err = errors.Join(err, s.config.Decide(prefix, path, until-now))
	}
	switch {
	case err != nil:
		s.untold++
		path, until = -1, now
	case !ok:
		path = -1
	default:
		s.told++
	}
	r.decided, r.until = path, until
}

// encapsulate writes the outer header of a path to a rack that there is traffic to.
func (s *Sampler) encapsulate(buf []byte, to netip.Addr, path int, id uint16) (packet []byte, ok bool) {
	edge, _ := s.rackOf(to)
	r := s.racks[edge]
	if r == nil || path >= r.paths.Count() {
		return nil, false // of a topology that is gone
	}
	o, err := paths.OuterBy(s.topology, s.config.Carrier, s.config.Address, r.paths.Addr(path), r.paths.Choices(path))
	if err != nil {
		return nil, false
	}
	packet, err = o.Encapsulate(buf, id)
	return packet, err == nil
}

func (s *Sampler) outer(to netip.Addr, path int) (o encap.Outer, ok bool) {
	return paths.OuterTo(s.topology, s.config.Carrier, s.config.Address, to, path)
}

func (s *Sampler) rackOf(host netip.Addr) (edge topology.NodeID, ok bool) {
	return s.topology.RackAt(host)
}

func (s *Sampler) write(packet []byte) error {
	s.bufs[0] = packet
	_, err := s.socket.Write(s.bufs[:], 0)
	return err
}

// receive takes what comes in until the socket is closed.
func (s *Sampler) receive() {
	const batch = 32
	bufs, sizes := make([][]byte, batch), make([]int, batch)
	for i := range bufs {
		bufs[i] = make([]byte, 256)
	}
	for {
		n, err := s.socket.Read(bufs, sizes, 0)
		s.mu.Lock()
		now := s.clock.Now()
		for i := range n {
			s.take(bufs[i][:sizes[i]], now)
		}
		s.alarm.Set(s.sampler.Next())
		if err != nil && !errors.Is(err, net.ErrClosed) {
			s.err = err
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *Sampler) take(packet []byte, now time.Duration) {
	edge, learned := s.sampler.Take(packet, now)
	if r := s.racks[edge]; learned && r != nil {
		s.decide(edge, r, now)
	}
}
