//go:build !linux

package link

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// UDP is a UDP underlay: one socket receives, and one socket for each path sends from a
// port of its own, a datagram per system call. It is safe for concurrent use. Outside
// Linux it does not set DF, and the TOS byte is 0 in both directions. Send waits if the
// system makes it wait.
type UDP struct {
	conn       *net.UDPConn
	local      netip.AddrPort
	mtu        int
	maxPayload int
	paths      []*udpPath
	fallback   string

	sendDrops, receiveDrops atomic.Uint64
	closed                  atomic.Bool
}

// maxFailures is how many errors in a row may be about single datagrams.
const maxFailures = 1000

type udpPath struct {
	mu   sync.Mutex
	conn *net.UDPConn
	buf  []byte
}

// OpenUDP opens the sockets. It needs no privilege.
func OpenUDP(c UDPConfig) (*UDP, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	conn, err := listenUDP(c.Listen)
	if err != nil {
		return nil, err
	}
	u := &UDP{conn: conn, local: localAddr(conn), mtu: c.MTU, maxPayload: c.maxPayload()}
	u.fallback = "weft batches and segments datagrams on Linux only"
	if c.ZeroChecksum {
		u.fallback += ", and leaves out checksums there only"
	}
	_ = conn.SetReadBuffer(8 << 20) // best effort: systems have their bounds
	for range c.Paths {
		conn, err := listenUDP(netip.AddrPortFrom(c.Listen.Addr(), 0))
		if err != nil {
			u.Close()
			return nil, err
		}
		u.paths = append(u.paths, &udpPath{conn: conn})
	}
	return u, nil
}

// LocalAddr returns the address on which datagrams are received.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Paths returns the number of paths.
func (u *UDP) Paths() int { return len(u.paths) }

// MTU returns the longest outer IP packet, in bytes.
func (u *UDP) MTU() int { return u.mtu }

// Drops returns how many datagrams were lost in both directions: those that Send could
// not send, and those that did not fit in the caller's buffer.
func (u *UDP) Drops() uint64 { return u.sendDrops.Load() + u.receiveDrops.Load() }

// Offloads says that there are none.
func (u *UDP) Offloads() UDPOffloads { return UDPOffloads{Fallback: u.fallback} }

// Send sends one datagram on a path, joined from parts. If size is positive, it sends
// datagrams of size bytes each, the last of which may be shorter. The bytes remain the
// caller's. After an error the rest of the call's datagrams are dropped and counted.
// Errors are ErrMessageSize, net.ErrClosed, and the system's.
func (u *UDP) Send(path int, to netip.AddrPort, _ byte, parts [][]byte, size int) error {
	p := u.paths[path]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf = p.buf[:0]
	for _, part := range parts {
		p.buf = append(p.buf, part...)
	}
	total := len(p.buf)
	if size <= 0 || size > total {
		size = total
	}
	if total == 0 {
		return nil
	}
	err := checkTo(to, u.local)
	if err == nil && size > u.maxPayload {
		err = ErrMessageSize
	}
	rest := p.buf
	for err == nil && len(rest) > 0 {
		n := min(size, len(rest))
		if _, err = p.conn.WriteToUDPAddrPort(rest[:n], to); err == nil {
			rest = rest[n:]
		}
	}
	u.sendDrops.Add(uint64((len(rest) + size - 1) / size))
	if errors.Is(err, net.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// Receive waits for a datagram: the first buffer then holds sizes[0] bytes from
// from[0]. It returns net.ErrClosed after Close.
func (u *UDP) Receive(bufs [][]byte, sizes, segs []int, tos []byte, from []netip.AddrPort) (n int, err error) {
	if len(bufs) == 0 {
		return 0, nil
	}
	for failures := 0; ; failures++ {
		size, _, flags, peer, err := u.conn.ReadMsgUDPAddrPort(bufs[0], nil)
		switch {
		case u.closed.Load() || errors.Is(err, net.ErrClosed):
			return 0, net.ErrClosed
		case err != nil && failures == maxFailures:
			return 0, err
		case err != nil || flags != 0:
			// Truncated, or what an ICMP message has brought (Windows reports
			// unreachable ports here): neither is the end.
			u.receiveDrops.Add(1)
			continue
		}
		sizes[0], segs[0], tos[0] = size, size, 0
		from[0] = netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port())
		return 1, nil
	}
}

// SetReadDeadline makes a Receive that waits at that time, or begins later, return
// os.ErrDeadlineExceeded. The zero time means never.
func (u *UDP) SetReadDeadline(t time.Time) error { return u.conn.SetReadDeadline(t) }

// Close makes all calls return net.ErrClosed, also those that wait. It may be called more
// than once.
func (u *UDP) Close() error {
	if u.closed.Swap(true) {
		return nil
	}
	errs := []error{u.conn.Close()}
	for _, p := range u.paths {
		errs = append(errs, p.conn.Close())
	}
	return errors.Join(errs...)
}
