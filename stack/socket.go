package stack

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// socket is what connections and listeners share: an endpoint of netstack,
// deadlines, and a Close that unblocks.
type socket struct {
	host        *Host
	ep          tcpip.Endpoint
	wq          *waiter.Queue
	network     string // tcp or udp, for errors
	read, write deadline
	counts      connCounts
	// Set before others see the socket: netstack forgets them when a
	// connection ends. remote is invalid without a peer.
	local, remote netip.AddrPort

	both    bool          // of both families, not bound to an address
	listens bool          // guarded by host.mu
	notify  *waiter.Entry // see Notify
	closing sync.Once
	closed  chan struct{}
}

// newSocket takes an endpoint over; it closes it when the Host is closed.
func (h *Host) newSocket(network string, ep tcpip.Endpoint, wq *waiter.Queue) (*socket, error) {
	s := &socket{host: h, ep: ep, wq: wq, network: network, closed: make(chan struct{})}
	if err := h.track(s); err != nil {
		ep.Abort()
		return nil, err
	}
	return s, nil
}

// wait calls try until it does something else than block, the deadline
// passes or the socket is closed. In virtual time it does not wait.
func (s *socket) wait(events waiter.EventMask, d *deadline, try func() tcpip.Error) error {
	if s.isClosed() {
		return s.host.closeReason()
	}
	expired := d.done()
	select {
	case <-expired:
		return os.ErrDeadlineExceeded
	default:
	}
	err := try()
	s.host.virtual.settle()
	if !wouldBlock(err) {
		return s.result(err)
	}
	if s.host.virtual != nil {
		return syscall.EAGAIN
	}
	entry, notify := waiter.NewChannelEntry(events | waiter.EventErr | waiter.EventHUp)
	s.wq.EventRegister(&entry)
	defer s.wq.EventUnregister(&entry)
	for {
		// Once more after registering, or an event in between were missed.
		if err := try(); !wouldBlock(err) {
			return s.result(err)
		}
		select {
		case <-notify:
		case <-expired:
			return os.ErrDeadlineExceeded
		case <-s.closed:
			return s.host.closeReason()
		}
	}
}

// result is err as a user should see it: what fails because of Close fails
// with net.ErrClosed.
func (s *socket) result(err tcpip.Error) error {
	if err != nil && s.isClosed() {
		return s.host.closeReason()
	}
	return errno(err)
}

func wouldBlock(err tcpip.Error) bool {
	_, ok := err.(*tcpip.ErrWouldBlock)
	return ok
}

// Close closes the socket; pending calls return net.ErrClosed. TCP goes on to
// send what was written.
func (s *socket) Close() error {
	if !s.shut(s.ep.Close) {
		return s.opError("close", net.ErrClosed)
	}
	return nil
}

func (s *socket) abort() { s.shut(s.ep.Abort) }

// shut is true for the call that closed the socket.
func (s *socket) shut(end func()) (first bool) {
	s.closing.Do(func() {
		first = true
		close(s.closed)
		s.read.set(time.Time{}) // their timers would keep the socket in memory
		s.write.set(time.Time{})
		end()
		s.host.virtual.settle()
		s.host.forget(s)
	})
	return first
}

// SetDeadline sets both deadlines.
func (s *socket) SetDeadline(t time.Time) error { return s.setDeadlines(t, &s.read, &s.write) }

// SetReadDeadline sets the time after which reads fail.
func (s *socket) SetReadDeadline(t time.Time) error { return s.setDeadlines(t, &s.read) }

// SetWriteDeadline sets the time after which writes fail.
func (s *socket) SetWriteDeadline(t time.Time) error { return s.setDeadlines(t, &s.write) }

func (s *socket) setDeadlines(t time.Time, which ...*deadline) error {
	if s.isClosed() {
		return s.opError("set", net.ErrClosed)
	}
	if s.host.virtual != nil {
		return s.opError("set", os.ErrNoDeadline)
	}
	for _, d := range which {
		d.set(t)
	}
	return nil
}

func (s *socket) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// LocalAddr returns the local address, also after Close.
func (s *socket) LocalAddr() net.Addr { return netAddr(s.network, s.local) }

// RemoteAddr returns the peer's address, also after Close; nil without a peer.
func (s *socket) RemoteAddr() net.Addr {
	if !s.remote.IsValid() {
		return nil
	}
	return netAddr(s.network, s.remote)
}

// learnLocal asks netstack for the address that it has chosen.
func (s *socket) learnLocal() {
	if a, err := s.ep.GetLocalAddress(); err == nil {
		s.local = addrPort(a)
		if a.Addr.Len() == 0 && s.both {
			s.local = netip.AddrPortFrom(netip.IPv6Unspecified(), a.Port)
		}
	}
}

func netAddr(network string, a netip.AddrPort) net.Addr {
	if network == "udp" {
		return net.UDPAddrFromAddrPort(a)
	}
	return net.TCPAddrFromAddrPort(a)
}

func (s *socket) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: s.network, Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}
