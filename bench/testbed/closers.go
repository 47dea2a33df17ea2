package testbed

import (
	"io"
	"sync"
)

// Closers holds the listeners and connections that a run has opened. The zero value is
// ready; it is safe for concurrent use.
type Closers struct {
	mu     sync.Mutex
	list   []io.Closer
	closed bool
}

// Keep closes c with the others, or at once if they are closed.
func (s *Closers) Keep(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return
	}
	s.list = append(s.list, c)
}

// Closed reports whether Close has been called.
func (s *Closers) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close closes all. Connections drop unsent data, which would otherwise still load the
// fabric.
func (s *Closers) Close() {
	s.mu.Lock()
	s.closed = true
	list := s.list
	s.mu.Unlock()
	for _, c := range list {
		if l, ok := c.(interface{ SetLinger(int) error }); ok {
			l.SetLinger(0)
		}
		c.Close()
	}
}
