package link

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendSocket is a packet socket that sends alone. It has no place in the runtime's poller:
// the kernel would wake that for each packet that has left (sock_def_write_space), and
// nothing here waits. It is safe for concurrent use.
type sendSocket struct {
	mu sync.RWMutex // held for reading during a system call
	fd int          // -1 once closed
	// most is what the kernel has counted the last time it was asked, and all that was sent
	// since: no more than that waits.
	most atomic.Int64
}

// openSender returns a socket that sends by the interface of this index.
func openSender(c PacketConfig, index int) (*sendSocket, error) {
	// Protocol 0 never receives.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket for sending: %w", err)
	}
	// The interface's queue already bounds what waits to be sent; the kernel's usual 200 KB
	// would bound it to two super-segments.
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		force(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, DefaultReceiveBuffer),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, c.Priority),
		unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}),
	)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up the socket for sending with priority %d: %w", c.Priority, err)
	}
	return &sendSocket{fd: fd}, nil
}

// use calls f with the descriptor.
func (s *sendSocket) use(f func(fd uintptr)) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(s.fd))
	return nil
}

// perPacket is more than what a packet costs in the kernel's memory besides its bytes.
const perPacket = 1 << 10

// sent counts packets of so many bytes together.
func (s *sendSocket) sent(packets, bytes int) { s.most.Add(int64(bytes + packets*perPacket)) }

// holds reports whether at least so many bytes, as the kernel counts them, were sent and have
// not left. The kernel is asked only if that is possible.
func (s *sendSocket) holds(bytes int) bool {
	if s.most.Load() < int64(bytes) {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return false
	}
	var n int32
	// It does not wait, so the runtime need not know of it.
	if _, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return false
	}
	s.most.Store(int64(n))
	return int(n) >= bytes
}

func (s *sendSocket) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := s.fd
	s.fd = -1
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}
