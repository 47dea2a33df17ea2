package stack

import (
	"net"
	"net/netip"
	"os"
	"sync"
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
// passes or the socket is closed.
func (s *socket) wait(events waiter.EventMask, d *deadline, try func() tcpip.Error) error {
	select {
	case <-s.closed:
		return net.ErrClosed
	default:
	}
	expired := d.done()
	select {
	case <-expired:
		return os.ErrDeadlineExceeded
	default:
	}
	err := try()
	if !wouldBlock(err) {
		return s.result(err)
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
			return net.ErrClosed
		}
	}
}

// result is err as a user should see it: what fails because of Close fails
// with net.ErrClosed.
func (s *socket) result(err tcpip.Error) error {
	if err == nil {
		return nil
	}
	select {
	case <-s.closed:
		return net.ErrClosed
	default:
		return errno(err)
	}
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
		end()
		s.host.forget(s)
	})
	return first
}

// SetDeadline sets both deadlines.
func (s *socket) SetDeadline(t time.Time) error {
	s.read.set(t)
	s.write.set(t)
	return nil
}

// SetReadDeadline sets the time after which reads fail.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.read.set(t)
	return nil
}

// SetWriteDeadline sets the time after which writes fail.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.write.set(t)
	return nil
}

// LocalAddr returns the local address.
func (s *socket) LocalAddr() net.Addr {
	a, err := s.ep.GetLocalAddress()
	if err != nil {
		return netAddr(s.network, netip.AddrPort{})
	}
	return netAddr(s.network, addrPort(a))
}

// RemoteAddr returns the peer's address, nil without a peer.
func (s *socket) RemoteAddr() net.Addr {
	a, err := s.ep.GetRemoteAddress()
	if err != nil {
		return nil
	}
	return netAddr(s.network, addrPort(a))
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

func addrPort(a tcpip.FullAddress) netip.AddrPort {
	if a.Addr.Len() != 4 {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(a.Addr.As4()), a.Port)
}

func fullAddress(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(a.Addr().As4()), Port: a.Port()}
}
