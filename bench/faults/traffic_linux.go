package faults

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// traffic is TCP connections between the observer and its peers, two each way. A connection
// that ends is made again.
type traffic struct {
	b         *Bed
	listeners []net.Listener
	stop      chan struct{}
	arrived   atomic.Int64
	wg        sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

const (
	perPair     = 2
	trafficPort = 5001
	piece       = 8 << 10 // written at once
)

func (b *Bed) startTraffic() (*traffic, error) {
	t := &traffic{b: b, stop: make(chan struct{}), conns: map[net.Conn]bool{}}
	for _, h := range append([]string{Observer}, peers...) {
		if err := t.listen(h); err != nil {
			t.close()
			return nil, err
		}
	}
	out, in := b.options.Load*b.options.Rate/float64(len(peers)*perPair), b.options.Load*b.options.Rate/float64(len(peers)*perPair)
	for _, p := range peers {
		for range perPair {
			t.wg.Add(2)
			go t.send(Observer, p, out)
			go t.send(p, Observer, in)
		}
	}
	return t, nil
}

func (t *traffic) listen(host string) error {
	var l net.Listener
	if err := t.b.do(host, func() (err error) { l, err = net.Listen("tcp4", ":5001"); return err }); err != nil {
		return err
	}
	t.listeners = append(t.listeners, l)
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.wg.Add(1)
			go t.receive(c)
		}
	}()
	return nil
}

// keep remembers a connection, and reports whether it may be used.
func (t *traffic) keep(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.stop:
		c.Close()
		return false
	default:
	}
	t.conns[c] = true
	return true
}

func (t *traffic) end(c net.Conn) {
	c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

func (t *traffic) receive(c net.Conn) {
	defer t.wg.Done()
	if !t.keep(c) {
		return
	}
	defer t.end(c)
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		t.arrived.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// send sends at a rate, Mbit/s, until the end.
func (t *traffic) send(from, to string, mbit float64) {
	defer t.wg.Done()
	for {
		t.sendOnce(from, to, mbit)
		select {
		case <-t.stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (t *traffic) sendOnce(from, to string, mbit float64) {
	node, err := t.b.topology.Lookup(to)
	if err != nil {
		return
	}
	var c net.Conn
	err = t.b.do(from, func() (err error) {
		c, err = net.DialTimeout("tcp4", netip.AddrPortFrom(node.Addr, trafficPort).String(), 2*time.Second)
		return err
	})
	if err != nil || !t.keep(c) {
		return
	}
	defer t.end(c)
	buf := make([]byte, piece)
	every := time.Duration(piece * 8 / mbit * float64(time.Microsecond))
	for next := time.Now(); ; next = next.Add(every) {
		if late := time.Since(next); late > time.Second {
			next = time.Now() // what was not sent then is not sent now
		}
		select {
		case <-t.stop:
			return
		case <-time.After(time.Until(next)):
		}
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

func (t *traffic) close() {
	t.mu.Lock()
	select {
	case <-t.stop:
	default:
		close(t.stop)
	}
	for c := range t.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	t.mu.Unlock()
	for _, l := range t.listeners {
		l.Close()
	}
	t.wg.Wait()
}
