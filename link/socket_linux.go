package link

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/internal/exitcode"
)

// networkOrder is ETH_P_ALL as bind wants it. A socket for all protocols, unlike
// one for IPv4 or IPv6, comes before tc's ingress: a program there may take away
// from the kernel what is received here.
const networkOrder = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8

// openSocket returns a non-blocking packet socket. limited says what was got
// less than asked for.
func openSocket(c PacketConfig, index int) (file *os.File, limited string, err error) {
	// Protocol 0 receives nothing until bind, so that there is nothing in the
	// queue that the filter has not seen (packet(7)).
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EPERM) {
		return nil, "", exitcode.AsAbsent(fmt.Errorf("no CAP_NET_RAW: run as root, or give the program the capability (setcap cap_net_raw+ep PROGRAM): %w", err))
	}
	if err != nil {
		return nil, "", fmt.Errorf("socket: %w", err)
	}
	limited, err = setUp(fd, c, index)
	if err != nil {
		unix.Close(fd)
		return nil, "", err
	}
	return os.NewFile(uintptr(fd), "packet:"+c.Interface), limited, nil
}

func setUp(fd int, c PacketConfig, index int) (limited string, err error) {
	for _, o := range []struct {
		name   string
		option int
	}{
		{"PACKET_VNET_HDR", unix.PACKET_VNET_HDR},
		{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING}, // Linux 4.20
	} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, o.option, 1); err != nil {
			if errors.Is(err, unix.ENOPROTOOPT) {
				return "", fmt.Errorf("the kernel has no %s: %w", o.name, err)
			}
			return "", fmt.Errorf("%s: %w", o.name, err)
		}
	}
	if limited, err = setBuffer(fd, c.ReceiveBuffer); err != nil {
		return "", err
	}
	if c.FilterFD != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, c.FilterFD); err != nil {
			return "", fmt.Errorf("the kernel refuses FilterFD: %w", err)
		}
	} else if err := attachFilter(fd, c.Filter); err != nil {
		return "", err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder, Ifindex: index}); err != nil {
		return "", fmt.Errorf("bind: %w", err)
	}
	if c.Fanout == 0 {
		return limited, nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, int(c.Fanout)|unix.PACKET_FANOUT_HASH<<16); err != nil {
		return "", fmt.Errorf("join fanout group %d (is a socket with other settings in it?): %w", c.Fanout, err)
	}
	drain(fd)
	return limited, nil
}

// force sets the size of a buffer, without CAP_NET_ADMIN up to the kernel's own bound.
func force(fd, forced, option, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, forced, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, size)
}

// setBuffer bounds what waits to be received.
func setBuffer(fd, receive int) (limited string, err error) {
	if err := force(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, receive); err != nil {
		return "", fmt.Errorf("set the receive buffer: %w", err)
	}
	// The kernel doubles what is asked for, for its own structures.
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err == nil && got/2 < receive {
		limited = fmt.Sprintf("the receive buffer is %d bytes, not %d: sysctl -w net.core.rmem_max=%d, or give the program CAP_NET_ADMIN", got/2, receive, receive)
	}
	return limited, nil
}

func attachFilter(fd int, filter []bpf.RawInstruction) error {
	code, err := program(filter)
	if err != nil {
		return err
	}
	prog := make([]unix.SockFilter, len(code))
	for i, c := range code {
		prog[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}); err != nil {
		return fmt.Errorf("the kernel refuses Filter: %w", err)
	}
	return nil
}

// drain throws away what came before the socket was in its fanout group: others
// in the group have it, too. A bounded number, or a flood would never end it.
func drain(fd int) {
	for range 1 << 16 {
		if _, _, err := unix.Recvfrom(fd, nil, unix.MSG_DONTWAIT|unix.MSG_TRUNC); errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}

// kernelHasUSO reports whether virtio headers may say that a packet is UDP
// super-segments: since Linux 6.2.
func kernelHasUSO() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 6 || major == 6 && minor >= 2)
}

// mmsghdr is struct mmsghdr of recvmmsg(2) and sendmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	len uint32
}

// batchLen is how many packets pass in a system call.
const batchLen = 64

// batch is what a system call needs for many packets: each has a VnetHeader and an Ethernet
// header before the caller's bytes.
type batch struct {
	msgs [batchLen]mmsghdr
	iovs [batchLen][2]unix.Iovec
	hdrs [batchLen][frameHeaderLen]byte
}

const frameHeaderLen = VnetHeaderLen + ethernetLen

func (b *batch) init() {
	for i := range b.msgs {
		b.iovs[i][0] = bytesOf(b.hdrs[i][:])
		b.msgs[i].Iov = &b.iovs[i][0]
		b.msgs[i].SetIovlen(2)
	}
}

// packet makes p the bytes of packet i; p must not be empty.
func (b *batch) packet(i int, p []byte) { b.iovs[i][1] = bytesOf(p) }

// bytes is how many the packets from first to before end have together.
func (b *batch) bytes(first, end int) (n int) {
	for i := first; i < end; i++ {
		n += int(b.iovs[i][1].Len)
	}
	return n
}

// release drops what belongs to the caller.
func (b *batch) release(n int) {
	for i := range min(n, batchLen) {
		b.iovs[i][1] = unix.Iovec{}
	}
}

// call makes the system call for the messages from first to before end. It
// returns how many of these were served, or why the first was not.
func (b *batch) call(trap, fd uintptr, first, end int) (n int, errno unix.Errno) {
	return callNow(trap, fd, unsafe.Pointer(&b.msgs[first]), end-first, unix.MSG_DONTWAIT)
}
