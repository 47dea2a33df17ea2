package membership

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// relay carries TCP connections to an address. What it does not let pass waits, as behind a
// network that is cut.
type relay struct {
	l    net.Listener
	to   string
	pass func(from string) <-chan struct{} // closed: what comes passes
	raft bool                              // from is the member of etcd that a connection is of
	ends chan struct{}
	all  sync.WaitGroup
	mu   sync.Mutex
	open map[net.Conn]bool
}

func newRelay(to string, raft bool, pass func(from string) <-chan struct{}) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{l: l, to: to, raft: raft, pass: pass, ends: make(chan struct{}), open: make(map[net.Conn]bool)}
	r.all.Go(r.serve)
	return r, nil
}

func (r *relay) address() string { return r.l.Addr().String() }

func (r *relay) serve() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		if r.add(c) {
			r.all.Go(func() { r.carry(c) })
		}
	}
}

// add takes note of a connection. It is closed at once after the relay's end.
func (r *relay) add(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ends:
		c.Close()
		return false
	default:
		r.open[c] = true
		return true
	}
}

func (r *relay) drop(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	c.Close()
}

// carry copies in both directions until one of them ends.
func (r *relay) carry(c net.Conn) {
	defer r.drop(c)
	from, in := "", io.Reader(c)
	if r.raft {
		b := bufio.NewReaderSize(c, 32<<10)
		from, in = sender(b), b
	}
	if !r.wait(from) {
		return
	}
	d, err := net.DialTimeout("tcp", r.to, 5*time.Second)
	if err != nil || !r.add(d) {
		return
	}
	defer r.drop(d)
	done := make(chan struct{}, 2)
	go func() { r.copy(d, in, from); done <- struct{}{} }()
	go func() { r.copy(c, d, from); done <- struct{}{} }()
	<-done
	r.drop(c)
	r.drop(d)
	<-done
}

// sender is the member of etcd that makes a request of its peers' protocol; "" if it does not say.
// It takes nothing from b.
func sender(b *bufio.Reader) string {
	const most = 16 << 10
	for n := 1; n < most; {
		head, err := b.Peek(n)
		if err != nil {
			return ""
		}
		head, _ = b.Peek(b.Buffered())
		if q, err := http.ReadRequest(bufio.NewReader(&atEnd{head})); err == nil {
			return q.Header.Get("X-Server-From")
		} else if !errors.Is(err, errMore) {
			return ""
		}
		n = len(head) + 1
	}
	return ""
}

var errMore = errors.New("more is to come")

// atEnd reads what is there.
type atEnd struct{ b []byte }

func (a *atEnd) Read(b []byte) (n int, err error) {
	if len(a.b) == 0 {
		return 0, errMore
	}
	n = copy(b, a.b)
	a.b = a.b[n:]
	return n, nil
}

// wait waits until what comes from somebody passes. It reports false at the relay's end.
func (r *relay) wait(from string) bool {
	for {
		passes := r.pass(from)
		select {
		case <-r.ends:
			return false
		case <-passes:
		}
		if r.pass(from) == passes { // else it was cut again
			return true
		}
	}
}

func (r *relay) copy(to io.Writer, in io.Reader, from string) {
	b := make([]byte, 16<<10)
	for {
		n, err := in.Read(b)
		if !r.wait(from) {
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// close ends all connections, and may be called again. What waits is lost.
func (r *relay) close() {
	r.l.Close()
	r.mu.Lock()
	select {
	case <-r.ends: // closed before
	default:
		close(r.ends)
	}
	for c := range r.open {
		c.Close()
	}
	r.mu.Unlock()
	r.all.Wait()
}

// valve lets things pass, or not.
type valve struct {
	mu     sync.Mutex
	passes chan struct{}
	cut    bool
}

func newValve() *valve {
	v := &valve{passes: make(chan struct{})}
	close(v.passes)
	return v
}

func (v *valve) pass(string) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.passes
}

func (v *valve) set(cut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case cut && !v.cut:
		v.passes = make(chan struct{})
	case !cut && v.cut:
		close(v.passes)
	}
	v.cut = cut
}

func (v *valve) isCut() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cut
}
