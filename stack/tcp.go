package stack

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// tcpConn is a TCPConn.
type tcpConn struct {
	*socket
	writing *sync.Mutex // one Write at a time, or their bytes would mix
}

func newTCPConn(s *socket) tcpConn {
	c := tcpConn{s, new(sync.Mutex)}
	_ = c.keepAlive(net.KeepAliveConfig{Enable: true}) // netstack takes the defaults
	// Netstack starts the timer of the probes when it receives something after
	// the handshake, or is told again.
	s.host.virtual.onceConnected(s, func() { s.ep.SocketOptions().SetKeepAlive(s.ep.SocketOptions().GetKeepAlive()) })
	return c
}

func (c tcpConn) Read(b []byte) (n int, err error) {
	err = c.wait(waiter.ReadableEvents, &c.read, func() tcpip.Error {
		w := tcpip.SliceWriter(b)
		r, err := c.ep.Read(&w, tcpip.ReadOptions{})
		n = r.Count
		return err
	})
	if n > 0 {
		c.counts.received.Add(uint64(n))
		c.ep.ModerateRecvBuf(n)
		c.host.virtual.settle()
	}
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

func (c tcpConn) Write(b []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	var r bytes.Reader
	for {
		r.Reset(b[n:])
		err = c.wait(waiter.WritableEvents, &c.write, func() tcpip.Error {
			k, err := c.ep.Write(&r, tcpip.WriteOptions{})
			n += int(k)
			c.counts.sent.Add(uint64(k))
			return err
		})
		if err != nil {
			return n, c.opError("write", err)
		}
		if n == len(b) {
			return n, nil
		}
	}
}

// CloseRead shuts the reading side.
func (c tcpConn) CloseRead() error { return c.shutdown(tcpip.ShutdownRead) }

// CloseWrite sends what was written and a FIN.
func (c tcpConn) CloseWrite() error { return c.shutdown(tcpip.ShutdownWrite) }

func (c tcpConn) shutdown(flags tcpip.ShutdownFlags) error {
	err := net.ErrClosed
	if !c.isClosed() {
		err = c.result(c.ep.Shutdown(flags))
		c.host.virtual.settle()
	}
	if err != nil {
		return c.opError("shutdown", err)
	}
	return nil
}

// tcpListener accepts TCP connections.
type tcpListener struct{ s *socket }

var _ net.Listener = tcpListener{}

// backlog is the most connections that wait to be accepted, as Linux has it
// (net.core.somaxconn).
const backlog = 4096

func (l tcpListener) Accept() (net.Conn, error) {
	var ep tcpip.Endpoint
	var wq *waiter.Queue
	var peer tcpip.FullAddress
	err := l.s.wait(waiter.ReadableEvents, &l.s.read, func() (err tcpip.Error) {
		ep, wq, err = l.s.ep.Accept(&peer)
		return err
	})
	if err == nil {
		var s *socket
		if s, err = l.s.host.newSocket("tcp", ep, wq); err == nil {
			s.local, s.remote = l.s.local, addrPort(peer)
			if l.s.both {
				s.learnLocal()
			}
			return newTCPConn(s), nil
		}
	}
	return nil, l.opError("accept", err)
}

func (l tcpListener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: l.s.network, Addr: l.Addr(), Err: err}
}

// Close stops listening; connections that were accepted stay.
func (l tcpListener) Close() error {
	if !l.s.shut(l.s.ep.Close) {
		return l.opError("close", net.ErrClosed)
	}
	return nil
}

func (l tcpListener) Addr() net.Addr { return l.s.LocalAddr() }

// SetDeadline sets the time after which Accept fails.
func (l tcpListener) SetDeadline(t time.Time) error { return l.s.SetReadDeadline(t) }
