package kernelhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"

	"weft/stack"
)

// Dial is DialContext without a context.
func (h *Host) Dial(network, address string) (net.Conn, error) {
	return h.DialContext(context.Background(), network, address)
}

// DialContext connects from the Host's address, as net.Dialer does: the errors are the
// kernel's own. network is "tcp", "tcp4", "udp", "udp4", or with Config.Topology6 also
// "tcp6" and "udp6". The connection has the methods of *net.TCPConn or *net.UDPConn.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if stack.PolicyFrom(ctx) != "" {
		return fail(errors.New("WithPolicy: a Host on the kernel's TCP has one policy; a stack.Host can give a connection its own"))
	}
	known, err := h.network(network)
	if err != nil {
		return fail(err)
	}
	if h.ctx.Err() != nil {
		return fail(net.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	d := net.Dialer{ControlContext: func(_ context.Context, network, address string, raw syscall.RawConn) error {
		if err := bindTo(raw, h.own(network)); err != nil || h.Control == nil {
			return err
		}
		return h.Control(network, address, raw)
	}}
	c, err := d.DialContext(ctx, known, address)
	if err != nil {
		if h.ctx.Err() != nil {
			return fail(net.ErrClosed)
		}
		return nil, err
	}
	open, err := h.keep(c)
	if err != nil {
		return fail(err)
	}
	return open, nil
}

// Listen accepts TCP connections at address, a host:port of the Host's own; an empty host
// is that address. Where it has both families, an empty host over "tcp" is both, and every
// other address of the machine's, too.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	l, err := h.bind(network, address, "tcp", func(c *net.ListenConfig, network, address string) (io.Closer, error) {
		return c.Listen(h.ctx, network, address)
	})
	if err != nil {
		return nil, err
	}
	return l.(net.Listener), nil
}

// ListenPacket opens a UDP socket at address, as Listen does for TCP.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	c, err := h.bind(network, address, "udp", func(c *net.ListenConfig, network, address string) (io.Closer, error) {
		return c.ListenPacket(h.ctx, network, address)
	})
	if err != nil {
		return nil, err
	}
	return c.(net.PacketConn), nil
}

func (h *Host) bind(network, address, proto string, open func(*net.ListenConfig, string, string) (io.Closer, error)) (io.Closer, error) {
	fail := func(err error) (io.Closer, error) {
		return nil, &net.OpError{Op: "listen", Net: network, Err: fmt.Errorf("%s: %w", address, err)}
	}
	if h.ctx.Err() != nil {
		return fail(net.ErrClosed)
	}
	known, err := h.network(network)
	if err == nil && known[:3] != proto {
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return fail(err)
	}
	local, err := h.local(known, address)
	if err != nil {
		return fail(err)
	}
	s, err := open(&net.ListenConfig{Control: h.Control}, known, local)
	if err != nil {
		return nil, err
	}
	if s, err = h.keepSocket(s); err != nil {
		return fail(err)
	}
	return s, nil
}

// network returns which networks of the kernel a network is.
func (h *Host) network(name string) (string, error) {
	six := h.address6.IsValid()
	switch name {
	case "tcp", "udp":
		if !six {
			name += "4"
		}
		return name, nil
	case "tcp4", "udp4":
		return name, nil
	case "tcp6", "udp6":
		if six {
			return name, nil
		}
	}
	return "", net.UnknownNetworkError(name)
}

// own is the address from which a network's packets are sent.
func (h *Host) own(network string) netip.Addr {
	if network[3:] == "6" {
		return h.address6
	}
	return h.address
}

// local returns where to listen.
func (h *Host) local(network, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	ip := netip.IPv6Unspecified()
	if host != "" {
		ips, err := net.DefaultResolver.LookupNetIP(h.ctx, "ip"+network[3:], host)
		if err != nil {
			return "", err
		}
		ip = ips[0].Unmap()
	}
	switch {
	case ip.IsUnspecified() && network[3:] == "":
		return net.JoinHostPort("", port), nil
	case ip.IsUnspecified():
		ip = h.own(network)
	case ip != h.address && ip != h.address6:
		return "", fmt.Errorf("this host has %v: %w", h.addresses(), syscall.EADDRNOTAVAIL)
	}
	return net.JoinHostPort(ip.String(), port), nil
}

func (h *Host) addresses() []netip.Addr {
	if h.address6.IsValid() {
		return []netip.Addr{h.address, h.address6}
	}
	return []netip.Addr{h.address}
}

// A socket that Close closes until it is closed itself.
type (
	tcpConn struct {
		*net.TCPConn
		host *Host
	}
	udpConn struct {
		*net.UDPConn
		host *Host
	}
	listener struct {
		*net.TCPListener
		host *Host
	}
)

func (c *tcpConn) Close() error  { c.host.forget(c); return c.TCPConn.Close() }
func (c *udpConn) Close() error  { c.host.forget(c); return c.UDPConn.Close() }
func (l *listener) Close() error { l.host.forget(l); return l.TCPListener.Close() }

// Accept returns the next connection, which has the methods of *net.TCPConn.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err != nil {
		return nil, err
	}
	open, err := l.host.keep(c)
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: err}
	}
	return open, nil
}

// keep has Close close a connection.
func (h *Host) keep(c net.Conn) (net.Conn, error) {
	open, err := h.keepSocket(c)
	if err != nil {
		return nil, err
	}
	return open.(net.Conn), nil
}

// keepSocket returns what stands for a socket. If it is too late, the socket is closed.
func (h *Host) keepSocket(s io.Closer) (io.Closer, error) {
	var open io.Closer
	switch s := s.(type) {
	case *net.TCPConn:
		open = &tcpConn{s, h}
	case *net.UDPConn:
		open = &udpConn{s, h}
	case *net.TCPListener:
		open = &listener{s, h}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sockets == nil || open == nil {
		s.Close()
		return nil, net.ErrClosed
	}
	h.sockets[open] = true
	return open, nil
}

func (h *Host) forget(s io.Closer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sockets, s)
}

// Close closes all sockets, which unblocks all calls with net.ErrClosed, and gives the kernel
// back its packets and settings. The kernel still delivers what was written. Close may be
// called more than once; later calls wait for the first.
func (h *Host) Close() error {
	h.closing.Do(func() {
		h.stop()
		h.mu.Lock()
		open := h.sockets
		h.sockets = nil
		h.mu.Unlock()
		for s := range open {
			s.Close()
		}
		if err := h.below.Close(); err != nil {
			h.err = fmt.Errorf("kernelhost: close the Host: %w", err)
		}
	})
	return h.err
}
