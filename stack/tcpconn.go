package stack

import (
	"io"
	"net"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// TCPConn has the methods of every TCP connection of a Host: those of *net.TCPConn,
// except the ones that need a file descriptor. *net.TCPConn implements it, too.
// Connections from DialContext and Accept are TCPConns:
//
//	conn.(stack.TCPConn).SetLinger(0)
//
// All methods are safe for concurrent use. Errors are *net.OpError; after Close they wrap
// net.ErrClosed.
//
// Call TCPConn, but do not implement it: it grows when *net.TCPConn does.
type TCPConn interface {
	net.Conn
	// ReadFrom sends what r returns until its end, and returns the number of bytes.
	// io.Copy calls it.
	io.ReaderFrom
	// WriteTo writes received data to w until the peer closes, and returns the number of
	// bytes. io.Copy calls it.
	io.WriterTo

	// CloseRead shuts the reading side.
	CloseRead() error
	// CloseWrite sends the remaining written data, and then the end of the stream.
	CloseWrite() error

	// SetKeepAlive turns probes of an idle connection on, which is the default, or off.
	SetKeepAlive(on bool) error
	// SetKeepAlivePeriod sets the time without traffic until the first probe; 0 means 15
	// s, and below 0 changes nothing.
	SetKeepAlivePeriod(d time.Duration) error
	// SetKeepAliveConfig sets all options of the probes. As in package net, Idle and
	// Interval of 0 mean 15 s, a Count of 0 means 9, and values below 0 change nothing.
	SetKeepAliveConfig(c net.KeepAliveConfig) error
	// SetNoDelay is true by default: written data leaves at once. With false, data waits
	// for a whole segment while other data is unacknowledged (Nagle's algorithm).
	SetNoDelay(on bool) error
	// SetLinger says what Close does with data that is not acknowledged. Below 0, the
	// default, and above 0: it is sent in the background. 0: it is discarded, and the
	// peer gets a reset.
	SetLinger(seconds int) error
	// SetReadBuffer and SetWriteBuffer fix a buffer's size in bytes, from 4 KiB to 8 MiB;
	// other values count as the nearer bound. By default buffers have 2.5 MiB, and grow.
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

var (
	_ TCPConn = tcpConn{}
	_ TCPConn = (*net.TCPConn)(nil)
)

// Package net's probes of an idle connection, which end one to a dead peer after
// 150 s.
const (
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 15 * time.Second
	keepAliveCount    = 9
)

func (c tcpConn) SetKeepAlive(on bool) error {
	return c.set(func() tcpip.Error {
		c.ep.SocketOptions().SetKeepAlive(on)
		return nil
	})
}

func (c tcpConn) SetKeepAlivePeriod(d time.Duration) error {
	return c.set(func() tcpip.Error { return c.setKeepAliveIdle(d) })
}

func (c tcpConn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.set(func() tcpip.Error { return c.keepAlive(config) })
}

// keepAlive sets the times first: turning probes on starts their timer.
func (c tcpConn) keepAlive(config net.KeepAliveConfig) tcpip.Error {
	if err := c.setKeepAliveIdle(config.Idle); err != nil {
		return err
	}
	if config.Interval >= 0 {
		interval := tcpip.KeepaliveIntervalOption(orDefault(config.Interval, keepAliveInterval))
		if err := c.ep.SetSockOpt(&interval); err != nil {
			return err
		}
	}
	if config.Count >= 0 {
		if err := c.ep.SetSockOptInt(tcpip.KeepaliveCountOption, orDefault(config.Count, keepAliveCount)); err != nil {
			return err
		}
	}
	c.ep.SocketOptions().SetKeepAlive(config.Enable)
	return nil
}

func (c tcpConn) setKeepAliveIdle(d time.Duration) tcpip.Error {
	if d < 0 {
		return nil
	}
	idle := tcpip.KeepaliveIdleOption(orDefault(d, keepAliveIdle))
	return c.ep.SetSockOpt(&idle)
}

func orDefault[T int | time.Duration](v, zero T) T {
	if v == 0 {
		return zero
	}
	return v
}

func (c tcpConn) SetNoDelay(on bool) error {
	return c.set(func() tcpip.Error {
		c.ep.SocketOptions().SetDelayOption(!on)
		return nil
	})
}

func (c tcpConn) SetLinger(seconds int) error {
	return c.set(func() tcpip.Error {
		c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: seconds == 0})
		return nil
	})
}

// SetReadBuffer fixes the size of the receive buffer, within netstack's limits.
func (s *socket) SetReadBuffer(bytes int) error {
	return s.set(func() tcpip.Error {
		o := s.ep.SocketOptions()
		least, most := o.ReceiveBufferLimits()
		o.SetReceiveBufferSize(min(max(int64(bytes), least), most), true)
		return nil
	})
}

// SetWriteBuffer fixes the size of the send buffer, within netstack's limits.
func (s *socket) SetWriteBuffer(bytes int) error {
	return s.set(func() tcpip.Error {
		o := s.ep.SocketOptions()
		least, most := o.SendBufferLimits()
		o.SetSendBufferSize(min(max(int64(bytes), least), most), true)
		return nil
	})
}

// set changes options of an open socket.
func (s *socket) set(change func() tcpip.Error) error {
	if s.isClosed() {
		return s.opError("set", s.host.closeReason())
	}
	err := s.result(change())
	s.host.virtual.settle()
	if err != nil {
		return s.opError("set", err)
	}
	return nil
}
