package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/internal/exitcode"
	"weft/topoupdate"
)

// socket is one port's. It belongs to no device until join, and then to that
// one.
type socket struct {
	fd    int
	index int // of the device whose group it has joined; 0: none
	bound bool
	group unix.SockaddrInet4 // into which package unix writes with every call
}

// fromNextDoor accepts packets that came in a frame to the group (multicast on the link)
// and that nobody has forwarded. A decapsulated packet came in a frame to this machine
// itself, whatever its inner header says. Otherwise a tunnel would carry forgeries with a
// full TTL to any port of the fabric (RFC 5082 §5.1). Packets that programs of this
// machine send to the group come back as neither.
var fromNextDoor = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtType},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_MULTICAST, SkipFalse: 3},
	bpf.LoadAbsolute{Off: networkHeader + 8, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 255, SkipFalse: 1},
	bpf.RetConstant{Val: 1 << 18},
	bpf.RetConstant{Val: 0},
}

// networkHeader is SKF_NET_OFF of linux/filter.h: offsets from it are the IP
// header's.
const networkHeader = 1<<32 - 0x100000

func openSocket(shared bool, buffer int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s := &socket{fd: fd, group: unix.SockaddrInet4{Port: topoupdate.Port, Addr: topoupdate.Group.As4()}}
	if err := s.setUp(shared); err != nil {
		s.close()
		return nil, err
	}
	setReceiveBuffer(fd, buffer)
	return s, nil
}

func (s *socket) setUp(shared bool) error {
	for _, o := range []struct {
		name          string
		level, option int
		value         int
	}{
		{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR, toInt(shared)},
		{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, typeOfService}, // and the packets' priority with it
		{"IP_MULTICAST_TTL", unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 255},
		{"IP_MULTICAST_LOOP", unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0},
		{"IP_MULTICAST_ALL", unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0}, // what others have joined is theirs
	} {
		if err := unix.SetsockoptInt(s.fd, o.level, o.option, o.value); err != nil {
			return fmt.Errorf("socket option %s: %w", o.name, err)
		}
	}
	raw, err := bpf.Assemble(fromNextDoor)
	if err != nil {
		return err
	}
	prog := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		prog[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}); err != nil {
		return fmt.Errorf("filter for TTL 255 and frames to the group: %w", err)
	}
	return nil
}

// join binds the socket to a device: it sends through that device alone, and hears the
// group there alone. Call it again for another device, or for one that was made anew and
// has forgotten the group.
func (s *socket) join(index int) error {
	if s.index != 0 {
		// The kernel finds the membership though the device may be gone.
		unix.SetsockoptIPMreqn(s.fd, unix.IPPROTO_IP, unix.IP_DROP_MEMBERSHIP, membership(s.index))
		s.index = 0
	}
	err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index)
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return fmt.Errorf("bind to the device: the kernel has no SO_BINDTOIFINDEX, which Linux 5.0 has: %w", err)
	case errors.Is(err, unix.EPERM):
		return exitcode.AsAbsent(fmt.Errorf("bind to the device: no CAP_NET_RAW: run as root, or give the program the capability (setcap cap_net_raw+ep PROGRAM): %w", err))
	case err != nil:
		return fmt.Errorf("bind to the device: %w", err)
	}
	if !s.bound {
		err := unix.Bind(s.fd, &s.group)
		if errors.Is(err, unix.EADDRINUSE) {
			return fmt.Errorf("UDP port %d: another program listens to link-state updates on this device; end it, or let both share (Config.Shared): %w", topoupdate.Port, err)
		}
		if err != nil {
			return fmt.Errorf("bind to %s: %w", groupName(), err)
		}
		s.bound = true
	}
	if err := unix.SetsockoptIPMreqn(s.fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, membership(index)); err != nil {
		return fmt.Errorf("join group %s: %w; the device needs the flag MULTICAST (ip link set DEVICE multicast on)", groupName(), err)
	}
	s.index = index
	return nil
}

func membership(index int) *unix.IPMreqn {
	return &unix.IPMreqn{Multiaddr: topoupdate.Group.As4(), Ifindex: int32(index)}
}

// send sends a message to whoever is at the other end of the cable.
func (s *socket) send(message []byte) error {
	return unix.Sendto(s.fd, message, unix.MSG_DONTWAIT, &s.group)
}

// drops is how many packets the kernel has thrown away at this socket, modulo
// 2^32: SK_MEMINFO_DROPS of sock_diag(7).
func (s *socket) drops() uint64 {
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[8])
}

func (s *socket) close() { unix.Close(s.fd) }

// setReceiveBuffer asks for as much as is asked for, or what may be had without
// CAP_NET_ADMIN. The kernel doubles it for its own structures.
func setReceiveBuffer(fd, size int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size/2) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size/2)
	}
}

func groupName() netip.AddrPort { return netip.AddrPortFrom(topoupdate.Group, topoupdate.Port) }

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func putNative(b []byte, words ...uint32) {
	for i, w := range words {
		binary.NativeEndian.PutUint32(b[4*i:], w)
	}
}
