package prober

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/exitcode"
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
	// also and by are of a host with several uplinks: what comes in by those other than in's,
	// and a raw socket for each, -1 where there is no such device.
	also []*link.Packet
	by   []int
	// kept are packets for in until flush, in memory of their own.
	kept [][]byte
	// port keeps the kernel from telling peers that nobody is at the probes' port.
	// Nobody reads it.
	port *net.UDPConn
	// unsent are packets of kept that were not taken; denied those written by raw sockets that
	// the kernel dropped (link.Denied).
	unsent, denied *atomic.Uint64
}

func openSockets(c *Config) (s sockets, err error) {
	s.out, s.unsent, s.denied = -1, new(atomic.Uint64), new(atomic.Uint64)
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
	several := len(c.Uplinks) > 0
	if c.Gateway.IsValid() && !several {
		in.Gateway, in.Priority = c.Gateway, interactive
	}
	if s.in, err = link.OpenPacket(in); err != nil {
		return s, err
	}
	switch {
	case several:
		err = s.openUplinks(c, in)
	case !c.Gateway.IsValid():
		s.out, err = openRaw(c.Address.Is6())
	}
	if err != nil {
		return s, err
	}
	return s, s.claimPort(c.Address)
}

// openUplinks opens what each of several uplinks needs.
func (s *sockets) openUplinks(c *Config, in link.PacketConfig) error {
	for _, device := range c.Uplinks {
		s.by = append(s.by, -1)
		if device == "" {
			continue
		}
		out, err := openRaw(c.Address.Is6())
		if err != nil {
			return err
		}
		s.by[len(s.by)-1] = out
		if err := unix.BindToDevice(out, device); err != nil {
			return fmt.Errorf("raw socket of %s: %w", device, err)
		}
		if device == c.Interface {
			continue
		}
		in.Interface = device
		also, err := link.OpenPacket(in)
		if err != nil {
			return err
		}
		s.also = append(s.also, also)
	}
	return nil
}

// openRaw opens a raw socket of a family.
func openRaw(six bool) (out int, err error) {
	family, options := unix.AF_INET, []rawOption{{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, encap.ProbeTOS}}
	if six {
		family, options = unix.AF_INET6, []rawOption{
			{"SO_PRIORITY", unix.SOL_SOCKET, unix.SO_PRIORITY, interactive},
			// Of the path's MTU a probe finds out itself: what the kernel believes does not count.
			{"IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
		}
	}
	// IPPROTO_RAW sends whole packets and receives nothing (raw(7)).
	if out, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = exitcode.AsAbsent(fmt.Errorf("%w: CAP_NET_RAW is missing", err))
		}
		return -1, fmt.Errorf("raw socket: %w", err)
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(out, o.level, o.option, o.value); err != nil {
			return -1, errors.Join(fmt.Errorf("raw socket: %s: %w", o.name, err), unix.Close(out))
		}
	}
	return out, nil
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

// maxKept is the most packets that leave in one system call.
const maxKept = 32

// send sends a whole packet, by flush if it leaves by in; to is the outer destination of
// IP-in-IP. One that is too many is written at once, with all others.
func (s *sockets) send(packet []byte, to netip.Addr) error {
	if s.out >= 0 {
		return s.sendRaw(s.out, packet, to)
	}
	n := len(s.kept)
	if n == cap(s.kept) && n < maxKept {
		s.kept = append(s.kept, nil)
	} else {
		s.kept = s.kept[:n+1]
	}
	s.kept[n] = append(s.kept[n][:0], packet...)
	if len(s.kept) == maxKept {
		s.flush()
	}
	return nil
}

// flush writes what send has kept, and counts what was not taken.
func (s *sockets) flush() {
	if len(s.kept) == 0 {
		return
	}
	n, _ := s.in.Write(s.kept, 0)
	s.unsent.Add(uint64(len(s.kept) - n))
	s.kept = s.kept[:0]
}

// sendBy is send by one of several uplinks.
func (s *sockets) sendBy(packet []byte, to netip.Addr, from int) error {
	if s.by[from] < 0 {
		return unix.ENODEV
	}
	return s.sendRaw(s.by[from], packet, to)
}

func (s *sockets) sendRaw(out int, packet []byte, to netip.Addr) (err error) {
	if to.Is6() {
		err = unix.Sendto(out, packet, 0, &unix.SockaddrInet6{Addr: to.As16()})
	} else {
		err = unix.Sendto(out, packet, 0, &unix.SockaddrInet4{Addr: to.As4()})
	}
	if link.Denied(err) {
		s.denied.Add(1)
	}
	return err
}

// ins are the sockets that probes come in by.
func (s *sockets) ins() []*link.Packet { return append(s.also[:len(s.also):len(s.also)], s.in) }

func (s *sockets) close() (err error) {
	if s.in != nil {
		err = s.in.Close()
	}
	for _, also := range s.also {
		err = errors.Join(err, also.Close())
	}
	for _, out := range append(s.by, s.out) {
		if out >= 0 {
			err = errors.Join(err, unix.Close(out))
		}
	}
	if s.port != nil {
		err = errors.Join(err, s.port.Close())
	}
	return err
}
