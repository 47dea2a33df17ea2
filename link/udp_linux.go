package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/shortage"
)

// udpBuffer is what is asked of a socket for sending and for receiving, in
// bytes: at 10 Gbit/s the receiver may be away for 6 ms. Root gets it; others
// get as much as net.core.rmem_max and wmem_max allow.
const udpBuffer = 8 << 20

// UDP is a UDP underlay: one socket receives, and one socket for each path sends from a
// port of its own. It sets DF on the packets it sends. It is safe for concurrent use:
// Sends on one path take turns, and so do Receives.
type UDP struct {
	local      netip.AddrPort
	mtu        int
	maxPayload int // of a datagram
	receiver   udpReceiver
	paths      []udpPath
	offloads   UDPOffloads // as got when opened

	segment atomic.Bool // UDP_SEGMENT works, as far as known
	refused atomic.Uint64
	why     atomic.Pointer[string] // set before segment becomes false

	sendDrops, receiveDrops atomic.Uint64
	closed                  atomic.Bool
}

// OpenUDP opens the sockets in the network namespace of the calling thread. It
// needs no privilege.
func OpenUDP(c UDPConfig) (*UDP, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	u := &UDP{mtu: c.MTU, maxPayload: c.maxPayload(), paths: make([]udpPath, 0, c.Paths)}
	err := u.openReceiver(c)
	for err == nil && len(u.paths) < c.Paths {
		err = u.openPath(c)
	}
	if err != nil {
		u.Close()
		return nil, shortage.Explain(err)
	}
	return u, nil
}

func (u *UDP) openReceiver(c UDPConfig) error {
	conn, err := listenUDP(c.Listen)
	if err != nil {
		return err
	}
	u.local = localAddr(conn)
	if err := u.receiver.init(conn); err != nil {
		return err
	}
	return control(conn, func(fd int) error { return u.receiverOptions(fd, c) })
}

func (u *UDP) receiverOptions(fd int, c UDPConfig) error {
	o := &u.offloads
	o.ReceiveBuffer = raiseBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	o.ZeroChecksum = c.ZeroChecksum
	// Best effort: without, what overflows is merely not counted.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1); err != nil {
		u.note(fmt.Sprintf("no UDP_GRO, which Linux has since 5.0: %v", err))
	} else {
		o.GRO = true
	}
	level, option := unix.IPPROTO_IP, unix.IP_RECVTOS
	if u.local.Addr().Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS
	}
	if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
		return fmt.Errorf("udp: cannot receive the TOS byte: %w", err)
	}
	o.ECN = true
	if c.ZeroChecksum && u.local.Addr().Is6() {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1); err != nil {
			return fmt.Errorf("udp: cannot accept zero checksums (UDP_NO_CHECK6_RX): %w", err)
		}
	}
	return nil
}

func (u *UDP) openPath(c UDPConfig) error {
	conn, err := listenUDP(netip.AddrPortFrom(c.Listen.Addr(), 0))
	if err != nil {
		if errors.Is(err, unix.EMFILE) {
			err = fmt.Errorf("Paths of %d need as many descriptors, fewer less: %w", c.Paths, err)
		}
		return err
	}
	u.paths = append(u.paths, udpPath{conn: conn})
	p := &u.paths[len(u.paths)-1]
	return control(conn, func(fd int) error {
		p.fd = fd
		return u.pathOptions(fd, c)
	})
}

func (u *UDP) pathOptions(fd int, c UDPConfig) error {
	v6 := u.local.Addr().Is6()
	raiseBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	// Nobody reads here: keep what strangers send to the port small.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)

	level, option, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
	if v6 {
		level, option, value = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
	}
	if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
		return fmt.Errorf("udp: cannot forbid fragmentation: %w", err)
	}
	if c.ZeroChecksum {
		level, option = unix.SOL_SOCKET, unix.SO_NO_CHECK
		if v6 {
			level, option = unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX
		}
		if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
			return fmt.Errorf("udp: cannot leave out checksums: %w", err)
		}
		u.note("Linux does not segment datagrams without a checksum: they are sent one by one")
		return nil
	}
	// Reading the option tells whether the kernel knows it.
	if _, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT); err != nil {
		u.note(fmt.Sprintf("no UDP_SEGMENT, which Linux has since 4.18: %v", err))
		return nil
	}
	u.segment.Store(true)
	return nil
}

// raiseBuffer asks for udpBuffer bytes, by privilege or without, and returns
// what was got.
func raiseBuffer(fd, force, option int) int {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, udpBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, udpBuffer)
	}
	got, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
	return got
}

// control runs f on the socket's descriptor.
func control(conn *net.UDPConn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// note records why less was got than asked for; the first reason stays.
func (u *UDP) note(why string) { u.why.CompareAndSwap(nil, &why) }

// LocalAddr returns the address on which datagrams are received.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Paths returns the number of paths.
func (u *UDP) Paths() int { return len(u.paths) }

// MTU returns the longest outer IP packet, in bytes.
func (u *UDP) MTU() int { return u.mtu }

// Drops returns how many datagrams were lost in both directions. Send loses datagrams
// when the socket's buffer or the device's queue is full, or with an error, which it
// returns. Receive loses datagrams, or trains that the kernel has merged, that did not
// fit in the socket's buffer or in the caller's. The kernel reports losses of the
// socket's buffer with the next datagram that arrives.
func (u *UDP) Drops() uint64 {
	return u.sendDrops.Load() + u.receiveDrops.Load() + u.receiver.overflow.Load()
}

// Offloads says what the kernel gave.
func (u *UDP) Offloads() UDPOffloads {
	o := u.offloads
	o.Segment = u.segment.Load()
	o.Refused = u.refused.Load()
	if why := u.why.Load(); why != nil {
		o.Fallback = *why
	}
	return o
}

// SetReadDeadline makes a Receive that waits at that time, or begins later, return
// os.ErrDeadlineExceeded. The zero time means never.
func (u *UDP) SetReadDeadline(t time.Time) error { return u.receiver.conn.SetReadDeadline(t) }

// Close makes all calls return net.ErrClosed, also those that wait. It may be called more
// than once.
func (u *UDP) Close() error {
	if u.closed.Swap(true) {
		return nil
	}
	var errs []error
	if u.receiver.conn != nil {
		errs = append(errs, u.receiver.conn.Close())
	}
	for i := range u.paths {
		errs = append(errs, u.paths[i].close())
	}
	return errors.Join(errs...)
}
