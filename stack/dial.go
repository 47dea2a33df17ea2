package stack

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"weft/third_party/netstack/tcp"
)

// Dial is DialContext without a context.
func (h *Host) Dial(network, address string) (net.Conn, error) {
	return h.DialContext(context.Background(), network, address)
}

// DialContext connects to address, a host:port over network "tcp", "tcp4", "tcp6", "udp",
// "udp4" or "udp6". IPv6 needs Config.Address6. It looks up host names with the system's
// resolver and tries all their addresses in turn, each with its share of the time that ctx
// leaves, as package net does. If there are addresses of both families, those of the second
// are tried besides after 300 ms (RFC 6555), except in a Simulation. It fits http.Transport.DialContext. A TCP connection is a TCPConn. WithPolicy
// gives the connection a policy of its own.
//
// The error is a *net.OpError that wraps the error of each address: those of the kernel's
// sockets (syscall.ECONNREFUSED), or ctx's (context.Canceled, context.DeadlineExceeded).
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	proto, remotes, err := h.resolve(ctx, network, address, false)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	policy, err := h.policyOf(ctx)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	d := dialing{h, network, proto, policy}
	first, second := byFamily(remotes)
	if len(second) > 0 && h.virtual == nil {
		return d.race(ctx, first, second)
	}
	return d.series(ctx, append(first, second...))
}

// dialOne connects to one address, while left are to be tried.
func (h *Host) dialOne(ctx context.Context, proto string, remote netip.AddrPort, policy flowPolicy, left int) (net.Conn, error) {
	ctx, cancel := shareOf(ctx, left)
	defer cancel()
	if proto == "udp" {
		s, err := h.dialUDP(ctx, remote, policy)
		if err != nil {
			return nil, err
		}
		return udpConn{s}, nil
	}
	s, err := h.dialTCP(ctx, remote, policy)
	if err != nil {
		return nil, err
	}
	return newTCPConn(s), nil
}

func (h *Host) dialTCP(ctx context.Context, remote netip.AddrPort, policy flowPolicy) (*socket, error) {
	if err := h.dialable(ctx, remote); err != nil {
		return nil, err
	}
	s, err := h.open("tcp", tcp.ProtocolNumber, familyOf(remote.Addr()))
	if err != nil {
		return nil, err
	}
	s.goBy(policy)
	entry, notify := waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventErr | waiter.EventHUp)
	s.wq.EventRegister(&entry)
	defer s.wq.EventUnregister(&entry)
	s.remote = remote
	terr := s.ep.Connect(fullAddress(remote))
	h.virtual.settle()
	if _, ok := terr.(*tcpip.ErrConnectStarted); ok && h.virtual != nil {
		terr = nil // Read and Write tell when it is connected, or why not
	} else if ok {
		select {
		case <-notify:
			terr = s.ep.LastError()
		case <-ctx.Done():
			s.abort()
			return nil, ctx.Err()
		case <-s.closed:
		}
	}
	if err := s.result(terr); err != nil {
		s.abort()
		return nil, err
	}
	s.learnLocal()
	if s.isClosed() {
		return nil, h.closeReason()
	}
	return s, nil
}

// dialable says what is known to prevent a connection before a packet is sent.
func (h *Host) dialable(ctx context.Context, remote netip.AddrPort) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !h.owns(remote.Addr()) && !h.egress.Reaches(remote.Addr()) {
		return syscall.ENETUNREACH
	}
	return nil
}

func (h *Host) dialUDP(ctx context.Context, remote netip.AddrPort, policy flowPolicy) (*socket, error) {
	if err := h.dialable(ctx, remote); err != nil {
		return nil, err
	}
	s, err := h.open("udp", udp.ProtocolNumber, familyOf(remote.Addr()))
	if err != nil {
		return nil, err
	}
	s.goBy(policy)
	s.remote = remote
	if err := s.result(s.ep.Connect(fullAddress(remote))); err != nil {
		s.abort()
		return nil, err
	}
	s.learnLocal()
	return s, nil
}

// Listen accepts TCP connections on address, a host:port over network "tcp", "tcp4" or
// "tcp6". The host may be an address of the Host's own. If it is empty, or "::" over "tcp",
// a Host with both families accepts both. Port 0 takes a free one.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	s, err := h.bind(network, address, "tcp", tcp.ProtocolNumber)
	if err == nil {
		if err = h.startListening(s); err == nil {
			return tcpListener{s}, nil
		}
		s.abort()
	}
	return nil, &net.OpError{Op: "listen", Net: network, Err: fmt.Errorf("%s: %w", address, err)}
}

// ListenPacket opens a UDP socket on address, a host:port over network "udp", "udp4" or
// "udp6", as Listen does for TCP.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	s, err := h.bind(network, address, "udp", udp.ProtocolNumber)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: fmt.Errorf("%s: %w", address, err)}
	}
	return udpConn{s}, nil
}

func (h *Host) bind(network, address, want string, proto tcpip.TransportProtocolNumber) (*socket, error) {
	got, locals, err := h.resolve(context.Background(), network, address, true)
	if err != nil {
		return nil, err
	}
	if got != want {
		return nil, net.UnknownNetworkError(network)
	}
	i := slices.IndexFunc(locals, func(a netip.AddrPort) bool { return a.Addr().IsUnspecified() || h.owns(a.Addr()) })
	if i < 0 {
		return nil, fmt.Errorf("this stack has %v only: %w", h.addresses(), syscall.EADDRNOTAVAIL)
	}
	s, err := h.open(want, proto, familyOf(locals[i].Addr()))
	if err != nil {
		return nil, err
	}
	s.both = locals[i].Addr().IsUnspecified()
	// As package net does for TCP: connections in TIME-WAIT do not keep a
	// server from starting again.
	s.ep.SocketOptions().SetReuseAddress(want == "tcp")
	if err := s.result(s.ep.Bind(fullAddress(locals[i]))); err != nil {
		s.abort()
		return nil, err
	}
	s.learnLocal()
	return s, nil
}

func (h *Host) open(network string, proto tcpip.TransportProtocolNumber, family tcpip.NetworkProtocolNumber) (*socket, error) {
	wq := new(waiter.Queue)
	ep, terr := h.net.NewEndpoint(proto, family, wq)
	if terr != nil {
		return nil, errno(terr)
	}
	return h.newSocket(network, ep, wq)
}
