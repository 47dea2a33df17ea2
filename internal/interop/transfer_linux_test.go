package interop

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"weft/internal/slowtest"
)

// pair is a connection of the kernels of two hosts.
type pair struct {
	n    *network
	a, b *net.TCPConn
	seed byte
}

// connect opens a connection to an address of another host, or of the same.
func (n *network) connect(from, to, addr string) *pair {
	n.Helper()
	p := &pair{n: n}
	var l *net.TCPListener
	n.do(to, func() (err error) {
		l, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(addr)})
		return err
	})
	defer l.Close()
	n.do(from, func() (err error) { // on this thread: net.Dial may use another
		p.a, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
		return err
	})
	l.SetDeadline(time.Now().Add(patience))
	var err error
	if p.b, err = l.AcceptTCP(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { p.a.Close(); p.b.Close() })
	return p
}

// send sends so many bytes one way and compares hashes.
func (p *pair) send(from, to net.Conn, size int64) error {
	p.seed++
	for _, c := range []net.Conn{from, to} {
		c.SetDeadline(time.Now().Add(slowtest.Choose(patience, 10*patience)))
	}
	sent, got := sha256.New(), sha256.New()
	errs := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.MultiWriter(from, sent), rand.NewChaCha8([32]byte{p.seed}), size)
		errs <- err
	}()
	n, err := io.CopyN(got, to, size)
	if err := errors.Join(err, <-errs); err != nil {
		return fmt.Errorf("after %d of %d bytes: %w", n, size, err)
	}
	if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
		return fmt.Errorf("%d bytes arrived changed", size)
	}
	return nil
}

// exchange sends so many bytes there, then back.
func (p *pair) exchange(size int64) {
	p.n.Helper()
	if err := errors.Join(p.send(p.a, p.b, size), p.send(p.b, p.a, size)); err != nil {
		p.n.Fatal(err)
	}
}

// stream is a transfer that goes on while other things happen.
type stream struct {
	*pair
	arrived atomic.Int64
	stop    atomic.Bool
	ended   chan error
}

// streamChunk is how many bytes are sent at a time. There are pauses between:
// others want the processor, too.
const streamChunk = 64 << 10

func (n *network) stream(from, to string) *stream {
	n.Helper()
	s := &stream{pair: n.connect(from, to, n.addr(to)), ended: make(chan error, 1)}
	sent, got := sha256.New(), sha256.New()
	sending := make(chan error, 1)
	go func() {
		rng, chunk := rand.NewChaCha8([32]byte{7}), make([]byte, streamChunk)
		var err error
		for err == nil && !s.stop.Load() {
			rng.Read(chunk)
			sent.Write(chunk)
			_, err = s.a.Write(chunk)
			time.Sleep(time.Millisecond)
		}
		sending <- errors.Join(err, s.a.CloseWrite())
	}()
	go func() {
		_, err := io.Copy(io.MultiWriter(got, counter{&s.arrived}), s.b)
		err = errors.Join(err, <-sending)
		if err == nil && !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
			err = errors.New("arrived changed")
		}
		s.ended <- err
	}()
	return s
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// moves waits until so many more bytes have arrived.
func (s *stream) moves(what string, size int64) {
	s.n.Helper()
	until := s.arrived.Load() + size
	s.n.eventually(fmt.Sprintf("%s: %d more bytes of a transfer arrive", what, size), func() bool {
		select {
		case err := <-s.ended:
			s.ended <- err
			s.n.Fatalf("%s: the transfer has ended: %v", what, err)
		default:
		}
		return s.arrived.Load() >= until
	})
}

// end ends the transfer, all of which must have arrived.
func (s *stream) end() {
	s.n.Helper()
	s.stop.Store(true)
	select {
	case err := <-s.ended:
		if err != nil {
			s.n.Fatalf("transfer: %v", err)
		}
	case <-time.After(patience):
		s.n.Fatal("transfer: does not end")
	}
}
