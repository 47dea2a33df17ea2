package prober

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/link"
)

// sockets are a prober's. What is sent is not buffered: what the uplink's queue
// has no room for is a probe that is missed.
type sockets struct {
	in *link.Packet
	// out is a raw socket, where no switch is known to send to: the kernel finds the
	// way. Else probes leave by in. No route is needed then, and none makes them
	// shorter; nor do those that a device loses when it goes down.
	out int
	// port keeps the kernel from telling peers that nobody is at the probes' port.
	// Nobody reads it.
	port *net.UDPConn
}

func openSockets(c *Config) (s sockets, err error) {
	s.out = -1
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	code, err := filter(c.Address, encap.ProbePort, true)
	if err != nil {
		return s, err
	}
	in := link.PacketConfig{Interface: c.Interface, Filter: code, ReceiveBuffer: 1 << 20}
	if c.Gateway.IsValid() {
		in.Gateway, in.Priority = c.Gateway, interactive
	}
	if s.in, err = link.OpenPacket(in); err != nil {
		return s, err
	}
	if !c.Gateway.IsValid() {
		if err := s.openRaw(c.Address.Is6()); err != nil {
			return s, err
		}
	}
	return s, s.claimPort(c.Address)
}

// openRaw opens the raw socket of a family.
func (s *sockets) openRaw(six bool) (err error) {
	family, options := unix.AF_INET, []rawOption{{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, encap.ProbeTOS}}
	if six {
		family, options = unix.AF_INET6, []rawOption{
			{"SO_PRIORITY", unix.SOL_SOCKET, unix.SO_PRIORITY, interactive},
			// Of the path's MTU a probe finds out itself: what the kernel believes does not count.
			{"IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
		}
	}
	// IPPROTO_RAW sends whole packets and receives nothing (raw(7)).
	if s.out, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: CAP_NET_RAW is missing", err)
		}
		return fmt.Errorf("raw socket: %w", err)
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(s.out, o.level, o.option, o.value); err != nil {
			return fmt.Errorf("raw socket: %s: %w", o.name, err)
		}
	}
	return nil
}

// rawOption is an option of the raw socket. The headers that it sends have a class of their
// own; IP_TOS and SO_PRIORITY are for the uplink's queue.
type rawOption struct {
	name                 string
	level, option, value int
}

// claimPort takes the port of the probes.
func (s *sockets) claimPort(own netip.Addr) error {
	// Another Prober, for another carrier, may have it, too.
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}); e != nil {
			return e
		}
		return err
	}}
	network := "udp4"
	if own.Is6() {
		network = "udp6"
	}
	port, err := shared.ListenPacket(context.Background(), network, netip.AddrPortFrom(own, encap.ProbePort).String())
	if err != nil {
		return fmt.Errorf("port of the probes: %w", err)
	}
	s.port = port.(*net.UDPConn)
	return s.port.SetReadBuffer(1)
}

// interactive is TC_PRIO_INTERACTIVE (linux/pkt_sched.h), which encap.ProbeTOS
// means to Linux.
const interactive = 6

// send sends a whole packet; to is the outer destination of IP-in-IP.
func (s *sockets) send(packet []byte, to netip.Addr) error {
	if s.out < 0 {
		_, err := s.in.Write([][]byte{packet}, 0)
		return err
	}
	if to.Is6() {
		return unix.Sendto(s.out, packet, 0, &unix.SockaddrInet6{Addr: to.As16()})
	}
	return unix.Sendto(s.out, packet, 0, &unix.SockaddrInet4{Addr: to.As4()})
}

func (s *sockets) close() (err error) {
	if s.in != nil {
		err = s.in.Close()
	}
	if s.out >= 0 {
		err = errors.Join(err, unix.Close(s.out))
	}
	if s.port != nil {
		err = errors.Join(err, s.port.Close())
	}
	return err
}
