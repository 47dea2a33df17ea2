package asymmetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

const (
	port         = 5001
	connectLimit = 20 * time.Second
	// mouseBytes is the size of a small transfer; the answer, when all has come, is a byte.
	// Mice share a connection, one after the other. A new connection for each would measure
	// the second that TCP waits before it sends a lost SYN again.
	mouseBytes = 20 << 10
	// mouseLimit is the time after which a mouse is given up, and the time that it
	// then counts.
	mouseLimit = 10 * time.Second
)

// The first byte of a connection says what it is for.
const (
	kindStream = 'S'
	kindMouse  = 'M'
)

// load is what runs over a session's hosts.
type load struct {
	hosts    []testbed.Host
	received atomic.Int64 // payload bytes of streams and mice
	broken   atomic.Int64 // streams whose connection has failed
	open     testbed.Closers
	work     sync.WaitGroup

	mice   sync.WaitGroup // those who send them
	timing atomic.Bool    // mice that begin now count
	ending atomic.Bool    // no more mice

	mu      sync.Mutex
	micros  []float64 // that mice took
	givenUp int
}

// mice go beside a stream. conn is nil before the first one and after one that was
// given up.
type mice struct {
	*load
	stream stream
	conn   net.Conn
}

// startLoad starts all streams, and beside them mice between the same hosts, about
// so often per stream.
func startLoad(ctx context.Context, hosts []testbed.Host, all []stream, every time.Duration, seed uint64) (*load, error) {
	l := &load{hosts: hosts}
	if err := errors.Join(l.listen(all), l.connect(ctx, all)); err != nil {
		l.stop()
		return nil, err
	}
	for i, s := range all {
		l.mice.Go(func() {
			m := mice{load: l, stream: s}
			m.send(every, rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
	return l, nil
}

// stop ends everything, mice under way first, while the streams go on beside them.
func (l *load) stop() {
	l.timing.Store(false)
	l.ending.Store(true)
	l.mice.Wait()
	l.open.Close()
	l.work.Wait()
}

func (l *load) listen(all []stream) error {
	listening := make(map[topology.NodeID]bool)
	for _, s := range all {
		if listening[s.to] {
			continue
		}
		listening[s.to] = true
		h := l.hosts[s.to]
		listener, err := h.Listen("tcp", fmt.Sprintf("%s:%d", h.Address, port))
		if err != nil {
			return err
		}
		l.open.Keep(listener)
		l.work.Go(func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				l.work.Go(func() { l.serve(c) })
			}
		})
	}
	return nil
}

func (l *load) serve(c net.Conn) {
	l.open.Keep(c)
	buf := make([]byte, 64<<10)
	if _, err := io.ReadFull(c, buf[:1]); err != nil {
		c.Close()
		return
	}
	if buf[0] == kindMouse {
		defer c.Close()
		for {
			n, err := io.ReadFull(c, buf[:mouseBytes])
			l.received.Add(int64(n))
			if err != nil {
				return
			}
			if _, err := c.Write(buf[:1]); err != nil {
				return
			}
		}
	}
	for {
		n, err := c.Read(buf)
		l.received.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// connect opens the streams, all of them before any sends.
func (l *load) connect(ctx context.Context, all []stream) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conns, errs := make([]net.Conn, len(all)), make([]error, len(all))
	var dials sync.WaitGroup
	for i, s := range all {
		dials.Go(func() { conns[i], errs[i] = l.dial(ctx, s) })
	}
	dials.Wait()
	for _, c := range conns {
		if c != nil {
			l.open.Keep(c)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, c := range conns {
		l.work.Go(func() {
			buf := make([]byte, 64<<10)
			buf[0] = kindStream
			for {
				if _, err := c.Write(buf); err != nil {
					if !l.open.Closed() {
						l.broken.Add(1)
					}
					return
				}
			}
		})
	}
	return nil
}

func (l *load) dial(ctx context.Context, s stream) (net.Conn, error) {
	return l.hosts[s.from].DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", l.hosts[s.to].Address, port))
}

// send sends them one after the other, at intervals of half to one and a half times
// every, longer only if one takes so long.
func (m *mice) send(every time.Duration, rng *rand.Rand) {
	next := time.Now().Add(time.Duration(rng.Float64() * float64(every)))
	for {
		for !m.ending.Load() && time.Now().Before(next) {
			time.Sleep(min(time.Until(next), 20*time.Millisecond))
		}
		if m.ending.Load() {
			return
		}
		next = time.Now().Add(time.Duration((0.5 + rng.Float64()) * float64(every)))
		m.sendOne()
	}
}

// sendOne sends a mouse and notes how long it took, if it counts.
func (m *mice) sendOne() {
	if m.conn == nil && !m.connect() {
		return
	}
	counts := m.timing.Load()
	start := time.Now()
	err := transfer(m.conn, start.Add(mouseLimit))
	took := time.Since(start)
	if err != nil {
		m.conn.Close()
		m.conn = nil
		took = mouseLimit
	}
	if !counts {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.micros = append(m.micros, float64(took.Nanoseconds())/1e3)
	if err != nil {
		m.givenUp++
	}
}

func (m *mice) connect() bool {
	ctx, cancel := context.WithTimeout(context.Background(), mouseLimit)
	defer cancel()
	c, err := m.dial(ctx, m.stream)
	if err != nil {
		return false
	}
	m.open.Keep(c)
	m.conn = c
	_, err = c.Write([]byte{kindMouse})
	return err == nil
}

func transfer(c net.Conn, deadline time.Time) error {
	c.SetDeadline(deadline)
	buf := make([]byte, mouseBytes)
	if _, err := c.Write(buf); err != nil {
		return err
	}
	_, err := io.ReadFull(c, buf[:1])
	return err
}
