package throughput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// stream is an end of the one connection.
type stream struct {
	bytes   atomic.Int64
	stop    atomic.Bool
	started bool
	run     func() error
	done    chan error // what run returned
	close   func() error
}

// start lets run begin; more than once is once.
func (s *stream) start() {
	if s.started {
		return
	}
	s.started = true
	go func() { s.done <- s.run() }()
}

// err tells whether the stream has failed so far.
func (s *stream) err() error {
	select {
	case err := <-s.done:
		s.done <- err
		return err
	default:
		return nil
	}
}

// finish waits for the end.
func (s *stream) finish() error {
	s.stop.Store(true)
	err := <-s.done
	s.done <- err
	return err
}

// receiver takes the first connection that comes in.
func receiver(l net.Listener) *stream {
	s := &stream{done: make(chan error, 1), close: l.Close}
	s.run = func() error {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		return s.receive(c)
	}
	s.start()
	return s
}

func (s *stream) receive(c net.Conn) error {
	b := make([]byte, chunk)
	for {
		n, err := c.Read(b)
		if n > 0 {
			if err := verify(s.bytes.Load(), b[:n]); err != nil {
				return err
			}
			s.bytes.Add(int64(n))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// connectLimit is more than a connection in a fabric that works takes.
const connectLimit = 10 * time.Second

// sender connects; it sends from start until finish.
func sender(h *host, target string) (*stream, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	c, err := h.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	s := &stream{done: make(chan error, 1), close: c.Close}
	s.run = func() error { return s.send(c) }
	return s, nil
}

func (s *stream) send(c net.Conn) error {
	for !s.stop.Load() {
		n, err := c.Write(at(s.bytes.Load()))
		s.bytes.Add(int64(n))
		if err != nil {
			return err
		}
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("%T cannot be closed for writing alone", c)
	}
	return half.CloseWrite()
}
