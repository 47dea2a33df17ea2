package daemon

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// pair is a connection of the kernels of two hosts.
type pair struct {
	n    *network
	ends [2]string // the hosts of a and b
	a, b net.Conn
	seed uint64
}

func (n *network) connect(from, to string) *pair {
	n.Helper()
	return n.connectAddrs(from, to, n.node(to).Addr.String())
}

func (n *network) connectAddrs(from, to, addr string) *pair {
	n.Helper()
	p := &pair{n: n, ends: [2]string{from, to}}
	var l net.Listener
	n.do(to, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(addr, "0"))
		return err
	})
	defer l.Close()
	n.do(from, func() (err error) {
		p.a, err = dialHere(l.Addr().String())
		return err
	})
	var err error
	if p.b, err = l.Accept(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { p.a.Close(); p.b.Close() })
	return p
}

// dialHere dials on this thread: net.Dial may use another, in another namespace.
func dialHere(addr string) (net.Conn, error) {
	to, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	return net.DialTCP("tcp", nil, to)
}

// exchange sends so many bytes each way at once, and wants them to arrive as they
// were.
func (p *pair) exchange(bytes int) {
	p.n.Helper()
	p.seed++
	type part struct {
		what string
		err  error
	}
	parts := make(chan part, 4)
	for i, way := range [][2]net.Conn{{p.a, p.b}, {p.b, p.a}} {
		seed := [32]byte{byte(p.seed), byte(p.seed >> 8)}
		for _, c := range way {
			c.SetDeadline(time.Now().Add(60 * time.Second))
		}
		go func() {
			_, err := io.CopyN(way[0], rand.NewChaCha8(seed), int64(bytes))
			parts <- part{p.ends[i] + " sends", err}
		}()
		go func() { parts <- part{p.ends[1-i] + " receives", compare(way[1], rand.NewChaCha8(seed), bytes)} }()
	}
	began, failed := time.Now(), false
	for range 4 {
		if d := <-parts; d.err != nil {
			p.n.Errorf("exchange %d (seed %d): after %v %s: %v", bytes, p.seed, time.Since(began), d.what, d.err)
			if !failed {
				p.n.explain(p.ends[:]...)
			}
			failed = true
		}
	}
	if failed {
		p.n.FailNow()
	}
}

func compare(got, want io.Reader, n int) error {
	a, b := sha256.New(), sha256.New()
	if _, err := io.CopyN(a, got, int64(n)); err != nil {
		return err
	}
	if _, err := io.CopyN(b, want, int64(n)); err != nil {
		return err
	}
	if !bytes.Equal(a.Sum(nil), b.Sum(nil)) {
		return errors.New("other bytes than were sent")
	}
	return nil
}
