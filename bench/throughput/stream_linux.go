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

// stream is an end of the connections.
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

// receiver takes the first connections that come in.
func receiver(l net.Listener, connections int) *stream {
	s := &stream{done: make(chan error, 1), close: l.Close}
	s.run = func() error {
		return each(connections, func(int) (net.Conn, error) { return l.Accept() }, func(c net.Conn) error {
			defer c.Close()
			return s.receive(c)
		})
	}
	s.start()
	return s
}

// each opens connections one after the other, and has f run for all of them at a time.
func each(connections int, open func(int) (net.Conn, error), f func(net.Conn) error) error {
	errs := make(chan error, connections)
	for i := range connections {
		c, err := open(i)
		if err != nil {
			return err
		}
		go func() { errs <- f(c) }()
	}
	var err error
	for range connections {
		err = errors.Join(err, <-errs)
	}
	return err
}

func (s *stream) receive(c net.Conn) error {
	b := make([]byte, chunk)
	for done := int64(0); ; {
		n, err := c.Read(b)
		if n > 0 {
			if err := verify(done, b[:n]); err != nil {
				return err
			}
			done += int64(n)
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
func sender(h *host, target string, connections int) (*stream, error) {
	var all []net.Conn
	free := func() (err error) {
		for _, c := range all {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	for range connections {
		ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
		c, err := h.DialContext(ctx, "tcp", target)
		cancel()
		if err != nil {
			return nil, errors.Join(err, free())
		}
		all = append(all, c)
	}
	s := &stream{done: make(chan error, 1), close: free}
	s.run = func() error {
		return each(len(all), func(i int) (net.Conn, error) { return all[i], nil }, s.send)
	}
	return s, nil
}

func (s *stream) send(c net.Conn) error {
	for done := int64(0); !s.stop.Load(); {
		n, err := c.Write(at(done))
		done += int64(n)
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
