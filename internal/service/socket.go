package service

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// speakTime is how long one who connects is waited for to say something, or that nothing
	// comes (by closing its direction, as AskStatus does). One who asks by HTTP speaks at once,
	// if its machine has the time to run it. Who says neither is answered after that time.
	speakTime = time.Second
	// method is what a request by HTTP begins with.
	method = "GET "
)

// socket is a status socket, which speaks two protocols.
type socket struct {
	net.Listener
	path   string
	file   os.FileInfo // what was made at path; nil: not known
	places *places
	status func() any
	mu     sync.Mutex // held while status is called
	server *http.Server
	web    handed
}

func newSocket(l net.Listener, path string, status func() any, c prometheus.Collector, more []Route) *socket {
	s := &socket{Listener: l, path: path, places: newPlaces(), status: status, web: handed{of: l, conns: make(chan net.Conn), done: make(chan struct{})}}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // Close looks first whose it is
	}
	s.file, _ = os.Lstat(path)
	s.server = web(c, func(w http.ResponseWriter, r *http.Request) {
		b, err := s.answer()
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // as in take
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(b)
	}, more)
	return s
}

// Close removes the socket, unless another daemon has put its own there since, and ends what
// is being answered. It waits for nobody.
func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
		os.Remove(s.path)
	}
	err := s.Listener.Close()
	s.places.end()
	s.server.Close()
	s.web.end()
	return err
}

// Gone reports whether somebody has removed the socket of ServeStatus, so that nobody can ask.
func Gone(c io.Closer) bool {
	s, ok := c.(*socket)
	if !ok {
		return false
	}
	_, err := os.Lstat(s.path)
	return errors.Is(err, fs.ErrNotExist)
}

// acceptAgain is the pause after a connection that could not be accepted, as when there are no
// descriptors left.
const acceptAgain = 50 * time.Millisecond

// accept answers each who connects, until the listener is closed. It never waits for a place:
// root may be next.
func (s *socket) accept() {
	go s.server.Serve(&s.web)
	for {
		conn, err := s.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptAgain)
			continue
		}
		go s.receive(conn)
	}
}

// receive answers one when there is a place. Who is refused sees that the connection ends.
func (s *socket) receive(conn net.Conn) {
	leave, ok := s.places.enter(peer(conn))
	if !ok {
		conn.Close()
		return
	}
	s.take(&placed{conn, leave})
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
