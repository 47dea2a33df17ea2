package failover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

const (
	streamPort   = 5001
	connectLimit = 20 * time.Second
	streamBuffer = 64 << 10
	// The interval at which a paced stream writes: long enough for two processors
	// and dozens of hosts, short enough that a burst is a few packets.
	paceEvery = 2 * time.Millisecond
)

// streams are the endless bulk transfers of a permutation, one per host.
type streams struct {
	hosts    []testbed.Host
	received []atomic.Int64 // bytes, by receiver
	lost     []atomic.Bool  // the connection of this sender has failed
	work     sync.WaitGroup
	open     testbed.Closers

	mu  sync.Mutex
	why error // the first failure of a connection
}

// startStreams connects each host i to host to[i] and lets it send
// bytesPerSecond, without end; 0: as fast as TCP goes.
func startStreams(ctx context.Context, hosts []testbed.Host, to []topology.NodeID, bytesPerSecond float64) (*streams, error) {
	s := &streams{hosts: hosts, received: make([]atomic.Int64, len(hosts)), lost: make([]atomic.Bool, len(hosts))}
	from := make([]int, len(hosts))
	for i, j := range to {
		from[j] = i
	}
	if err := s.listen(from); err != nil {
		s.stop()
		return nil, err
	}
	if err := s.connect(ctx, to, bytesPerSecond); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *streams) listen(from []int) error {
	for j, h := range s.hosts {
		l, err := h.Listen("tcp", fmt.Sprintf("%s:%d", h.Address, streamPort))
		if err != nil {
			return err
		}
		s.open.Keep(l)
		s.work.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				s.open.Keep(c)
				s.work.Go(func() { s.receive(c, j, from[j]) })
			}
		})
	}
	return nil
}

func (s *streams) receive(c net.Conn, to, from int) {
	buf := make([]byte, streamBuffer)
	for {
		n, err := c.Read(buf)
		s.received[to].Add(int64(n))
		if err != nil {
			s.fail(from, fmt.Errorf("host %d: %w", to, err))
			return
		}
	}
}

func (s *streams) connect(ctx context.Context, to []topology.NodeID, rate float64) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conns, errs := make([]net.Conn, len(to)), make([]error, len(to))
	var dials sync.WaitGroup
	for i, j := range to {
		dials.Go(func() {
			conns[i], errs[i] = s.hosts[i].DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", s.hosts[j].Address, streamPort))
			if errs[i] == nil {
				s.open.Keep(conns[i])
			}
		})
	}
	dials.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, c := range conns {
		s.work.Go(func() { s.fail(i, send(c, rate)) })
	}
	return nil
}

// send writes until the connection fails, and returns why. What a paced stream
// could not write in time is not made up for.
func send(c net.Conn, rate float64) error {
	buf := make([]byte, streamBuffer)
	if rate == 0 {
		for {
			if _, err := c.Write(buf); err != nil {
				return err
			}
		}
	}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	last := time.Now()
	for range tick.C {
		now := time.Now() // the tick may have waited
		n := int(rate * now.Sub(last).Seconds())
		last = now
		if _, err := c.Write(buf[:min(n, len(buf))]); err != nil {
			return err
		}
	}
	return nil
}

// fail notes that a connection has failed, if it was not stopped.
func (s *streams) fail(from int, why error) {
	if s.open.Closed() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[from].Store(true)
	if s.why == nil {
		s.why = why
	}
}

// lostConnections is how many have failed so far, with the first one's reason.
func (s *streams) lostConnections() (n int, why error) {
	for i := range s.lost {
		if s.lost[i].Load() {
			n++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return n, s.why
}

// count returns the bytes that each host has received so far.
func (s *streams) count() []int64 {
	all := make([]int64, len(s.received))
	for i := range s.received {
		all[i] = s.received[i].Load()
	}
	return all
}

func (s *streams) stop() {
	s.open.Close()
	s.work.Wait()
}
