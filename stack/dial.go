package stack

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"weft/third_party/netstack/tcp"
)

// DialContext connects to address, a host:port, over network "tcp", "tcp4",
// "udp" or "udp4". Host names are looked up with the system's resolver. It
// fits http.Transport.DialContext.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	proto, remote, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var s *socket
	if proto == "udp" {
		s, err = h.dialUDP(ctx, remote)
	} else {
		s, err = h.dialTCP(ctx, remote)
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: netAddr(proto, remote), Err: err}
	}
	if proto == "udp" {
		return udpConn{s}, nil
	}
	return newTCPConn(s), nil
}

func (h *Host) dialTCP(ctx context.Context, remote netip.AddrPort) (*socket, error) {
	if err := h.dialable(ctx, remote); err != nil {
		return nil, err
	}
	s, err := h.open("tcp", tcp.ProtocolNumber)
	if err != nil {
		return nil, err
	}
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
	if !h.egress.reaches(remote.Addr()) {
		return syscall.ENETUNREACH
	}
	return nil
}

func (h *Host) dialUDP(ctx context.Context, remote netip.AddrPort) (*socket, error) {
	if err := h.dialable(ctx, remote); err != nil {
		return nil, err
	}
	s, err := h.open("udp", udp.ProtocolNumber)
	if err != nil {
		return nil, err
	}
	s.remote = remote
	if err := s.result(s.ep.Connect(fullAddress(remote))); err != nil {
		s.abort()
		return nil, err
	}
	s.learnLocal()
	return s, nil
}

// Listen accepts TCP connections on address, a host:port over network "tcp"
// or "tcp4". The host may be empty or the Host's own address; port 0 takes a
// free one.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	s, err := h.bind(network, address, "tcp", tcp.ProtocolNumber)
	if err == nil {
		if err = s.result(s.ep.Listen(backlog)); err == nil {
			return tcpListener{s}, nil
		}
		s.abort()
	}
	return nil, &net.OpError{Op: "listen", Net: network, Err: fmt.Errorf("%s: %w", address, err)}
}

// ListenPacket opens a UDP socket on address, a host:port over network "udp"
// or "udp4", as Listen does for TCP.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	s, err := h.bind(network, address, "udp", udp.ProtocolNumber)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: fmt.Errorf("%s: %w", address, err)}
	}
	return udpConn{s}, nil
}

func (h *Host) bind(network, address, want string, proto tcpip.TransportProtocolNumber) (*socket, error) {
	got, local, err := h.resolve(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	if got != want {
		return nil, net.UnknownNetworkError(network)
	}
	if local.Addr() != h.address {
		return nil, fmt.Errorf("this stack has %v only: %w", h.address, syscall.EADDRNOTAVAIL)
	}
	s, err := h.open(want, proto)
	if err != nil {
		return nil, err
	}
	// As package net does for TCP: connections in TIME-WAIT do not keep a
	// server from starting again.
	s.ep.SocketOptions().SetReuseAddress(want == "tcp")
	if err := s.result(s.ep.Bind(fullAddress(local))); err != nil {
		s.abort()
		return nil, err
	}
	s.learnLocal()
	return s, nil
}

func (h *Host) open(network string, proto tcpip.TransportProtocolNumber) (*socket, error) {
	wq := new(waiter.Queue)
	ep, terr := h.net.NewEndpoint(proto, ipv4.ProtocolNumber, wq)
	if terr != nil {
		return nil, errno(terr)
	}
	return h.newSocket(network, ep, wq)
}

// resolve reads a network and an address; proto is tcp or udp. An empty or
// unspecified host is the stack itself: it has one address.
func (h *Host) resolve(ctx context.Context, network, address string) (proto string, a netip.AddrPort, err error) {
	switch network {
	case "tcp", "tcp4", "udp", "udp4":
		proto = strings.TrimSuffix(network, "4")
	default:
		return "", a, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", a, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return "", a, err
	}
	ip := h.address
	if host != "" {
		if ip, err = lookup(ctx, host); err != nil {
			return "", a, err
		}
	}
	if ip.IsUnspecified() {
		ip = h.address
	}
	return proto, netip.AddrPortFrom(ip, uint16(port)), nil
}

func lookup(ctx context.Context, host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip = ip.Unmap(); !ip.Is4() {
			return ip, &net.AddrError{Err: "not an IPv4 address", Addr: host}
		}
		return ip, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return ips[0].Unmap(), nil
}
