package failover

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
)

// tap listens to what a device of a host sends. It costs nothing until it is aimed.
type tap struct {
	fd       int
	buf, oob []byte
}

// tapBuffer holds the packets between two drains, in bytes as the kernel counts
// them (2 KB a packet): seconds of one host's packets at the lab's rates. If
// packets do not fit, the measurement fails.
const tapBuffer = 32 << 20

// openTap opens a tap on a device of the calling thread's network namespace. It sees what
// the device sends, behind its queue.
func openTap(device string) (*tap, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("tap on %s: %w", device, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("tap on %s: packet socket (CAP_NET_RAW): %w", device, err)
	}
	t := &tap{fd: fd, buf: make([]byte, snapBytes), oob: make([]byte, unix.CmsgSpace(16))}
	if err := t.configure(dev.Index); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("tap on %s: %w", device, err)
	}
	return t, nil
}

func (t *tap) configure(index int) error {
	// Nothing is taken before it is aimed, and nothing arrives before it is bound.
	if err := t.filter(nil); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer); err != nil {
		return fmt.Errorf("receive buffer (CAP_NET_ADMIN): %w", err)
	}
	if err := unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("kernel timestamps: %w", err)
	}
	// All protocols: a socket for IP alone does not see what is sent.
	return unix.Bind(t.fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index})
}

func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }

// aim takes from now on the packets to these bouncing addresses; none: nothing.
func (t *tap) aim(bounces []netip.Addr) error { return t.filter(bounces) }

func (t *tap) filter(bounces []netip.Addr) error {
	raw, err := holeFilter(bounces)
	if err != nil {
		return err
	}
	return kernel.AttachSocketFilter(t.fd, raw)
}

// errTapOverflow says that a tap's account has holes of its own.
var errTapOverflow = errors.New("more packets than a tap's buffer holds: lower the rate or the outage")

// drain gives f everything that was seen since the last drain.
func (t *tap) drain(top *topology.Topology, f func(sighting)) error {
	for {
		n, oobn, _, _, err := unix.Recvmsg(t.fd, t.buf, t.oob, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return t.checkOverflow()
		case err == unix.ENETDOWN: // reported once; the device is someone else's to mind
			continue
		case err != nil:
			return os.NewSyscallError("recvmsg", err)
		}
		at, err := timestamp(t.oob[:oobn])
		if err != nil {
			return err
		}
		if c, ok := parsePath(top, t.buf[:n]); ok {
			f(sighting{c, at})
		}
	}
}

// checkOverflow reads, and so resets, what the socket had to drop.
func (t *tap) checkOverflow() error {
	s, err := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return os.NewSyscallError("getsockopt(PACKET_STATISTICS)", err)
	}
	if s.Drops > 0 {
		return fmt.Errorf("%d packets lost: %w", s.Drops, errTapOverflow)
	}
	return nil
}

func (t *tap) close() error { return unix.Close(t.fd) }

// timestamp finds the time in a packet's control messages.
func timestamp(oob []byte) (time.Time, error) {
	for len(oob) >= unix.CmsgSpace(0) {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return time.Time{}, os.NewSyscallError("recvmsg", err)
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS {
			return parseTimespec(data)
		}
		oob = rest
	}
	return time.Time{}, errors.New("a packet came without the kernel's timestamp")
}
