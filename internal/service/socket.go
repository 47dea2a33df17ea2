package service

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// speakTime is how long one who connects is waited for to say something, or that nothing
	// comes (by closing its direction, as AskStatus does). One who asks by HTTP speaks at once,
	// if its machine has the time to run it. Who says neither is answered after that time.
	speakTime = time.Second
	// maxAsking is how many are answered at a time. The next ones wait.
	maxAsking = 32
	// method is what a request by HTTP begins with.
	method = "GET "
)

// socket is a status socket, which speaks two protocols.
type socket struct {
	bounded
	status func() any
	mu     sync.Mutex // held while status is called
	server *http.Server
	web    handed
}

func newSocket(l net.Listener, status func() any, c prometheus.Collector) *socket {
	s := &socket{bounded: newBounded(l), status: status, web: handed{of: l, conns: make(chan net.Conn), done: make(chan struct{})}}
	s.server = web(c, func(w http.ResponseWriter, r *http.Request) {
		b, err := s.answer()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(b)
	})
	return s
}

// Close removes the socket, and ends what is being answered.
func (s *socket) Close() error {
	err := s.Listener.Close()
	s.server.Close()
	s.web.end()
	return err
}

// accept answers each who connects, until the listener is closed.
func (s *socket) accept() {
	go s.server.Serve(&s.web)
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		go s.take(conn)
	}
}

// take finds out which protocol one speaks.
func (s *socket) take(conn net.Conn) {
	said := make([]byte, len(method))
	conn.SetReadDeadline(time.Now().Add(speakTime))
	n, _ := io.ReadFull(conn, said)
	if string(said[:n]) == method {
		conn.SetReadDeadline(time.Time{})
		s.web.hand(&replayed{conn, said})
		return
	}
	if b, err := s.answer(); err == nil {
		// From now on: the daemon may have been busy for longer than that, and is not to
		// blame who asks for it.
		conn.SetDeadline(time.Now().Add(answerTime))
		conn.Write(b)
	}
	conn.Close()
}

func (s *socket) answer() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(s.status())
	return append(b, '\n'), err
}

// replayed is a connection of which the beginning has been read already.
type replayed struct {
	net.Conn
	said []byte
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.said) > 0 {
		n := copy(b, r.said)
		r.said = r.said[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

// handed is a listener of the connections that are handed to it.
type handed struct {
	of    net.Listener
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (h *handed) hand(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		c.Close()
	}
}

func (h *handed) end() { h.once.Do(func() { close(h.done) }) }

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error   { h.end(); return nil }
func (h *handed) Addr() net.Addr { return h.of.Addr() }

// bounded accepts at most maxAsking connections at a time.
type bounded struct {
	net.Listener
	places chan struct{}
}

func newBounded(l net.Listener) bounded { return bounded{l, make(chan struct{}, maxAsking)} }

func (b bounded) Accept() (net.Conn, error) {
	b.places <- struct{}{}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-b.places })}, nil
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
