package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxIovecs is the kernel's bound on the pieces of a message (UIO_MAXIOV).
const maxIovecs = 1024

// udpPath is the sending socket of a path and what its calls need, so that none
// allocates.
type udpPath struct {
	mu     sync.Mutex
	conn   *net.UDPConn
	fd     int // conn's, valid while conn is not nil
	addr4  unix.RawSockaddrInet4
	addr6  unix.RawSockaddrInet6
	name   *byte // of addr4 or addr6
	length uint32
	msgs   []unix.Mmsghdr
	iovecs []unix.Iovec
	// ends is where the iovecs of each message end.
	ends    [maxTrain]int
	control [(tosSpace + segmentSpace) / 8]uint64
}

// Sizes of control messages, header included, in bytes. On 32-bit systems there
// is some to spare.
const (
	tosSpace     = 24 // an int
	segmentSpace = 24 // a uint16
)

func (p *udpPath) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := p.conn
	p.conn = nil
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// Send sends one datagram on a path, from 0 to Paths()-1, joined from parts. If size is
// positive, it sends a train: datagrams of size bytes each, the last of which may be
// shorter. The parts need not end where datagrams do. A train of any length is split into
// pieces that the kernel takes at once: 64 datagrams or 65,507 bytes. tos is the outer IP
// header's DSCP and ECN. The bytes remain the caller's.
//
// Send does not wait. Datagrams for which the socket's buffer or the device's queue is
// full are dropped and counted; that is no error. After an error the rest of the call's
// datagrams are dropped and counted. Errors are ErrMessageSize, net.ErrClosed, and the
// kernel's, for example about routes. The device remains usable after all but
// net.ErrClosed.
func (u *UDP) Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error {
	total := 0
	for _, part := range parts {
		total += len(part)
	}
	if size <= 0 || size > total {
		size = total
	}
	if total == 0 {
		return nil
	}
	lost := (total + size - 1) / size
	err := checkTo(to, u.local)
	if err == nil && size > u.maxPayload {
		err = ErrMessageSize
	}
	if err == nil {
		lost, err = u.sendAll(&u.paths[path], to, tos, parts, total, size)
	}
	if lost > 0 {
		u.sendDrops.Add(uint64(lost))
	}
	return err
}

// sendAll cuts what is to be sent into trains and returns how many datagrams
// were lost.
func (u *UDP) sendAll(p *udpPath, to netip.AddrPort, tos byte, parts [][]byte, total, size int) (lost int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return (total + size - 1) / size, net.ErrClosed
	}
	p.address(to)
	most := TrainBytes(size)
	for at := (cursor{parts: parts}); total > 0; {
		n := min(total, most)
		unsent, errno := u.sendTrain(p, &at, tos, n, size)
		lost += unsent
		total -= n
		if errno != 0 && !noRoom(errno) {
			return lost + (total+size-1)/size, sendError(to, errno)
		}
	}
	return lost, nil
}

func sendError(to netip.AddrPort, errno unix.Errno) error {
	if errno == unix.EMSGSIZE {
		return ErrMessageSize
	}
	return fmt.Errorf("udp: send to %v: %w", to, errno)
}

// sendTrain sends the n bytes at the cursor, which it moves, in datagrams of
// size bytes, and returns how many were not sent and why.
func (u *UDP) sendTrain(p *udpPath, at *cursor, tos byte, n, size int) (unsent int, errno unix.Errno) {
	if n > size && u.segment.Load() {
		rest := *at
		errno = p.sendSegmented(&rest, tos, n, size)
		if !refusal(errno) && errno != tooManyParts {
			*at = rest
			if errno != 0 {
				unsent = (n + size - 1) / size
			}
			return unsent, errno
		}
	}
	refused := errno
	unsent, errno = p.sendEach(at, tos, n, size)
	// The kernel says EINVAL, too, where datagrams are too long for the path.
	// Then they are so one by one as well, and nothing is wrong with trains.
	if refusal(refused) && errno == 0 {
		u.refuse(refused)
	}
	return unsent, errno
}

// tooManyParts says that a train is in more parts than a message may have.
const tooManyParts = unix.E2BIG

// refusal reports whether an error may mean that the kernel, or the device of the route,
// cannot segment. EIO comes from a device that does not compute checksums (udp_send_skb
// in net/ipv4/udp.c). 524 is the kernel's own ENOTSUPP, which some drivers return by
// mistake.
func refusal(errno unix.Errno) bool {
	switch errno {
	case unix.EIO, unix.EINVAL, unix.EOPNOTSUPP, unix.ENOPROTOOPT, unix.Errno(524):
		return true
	}
	return false
}

// refuse ends the use of UDP_SEGMENT for good: offloads break at run time, and
// a device that went on would lose every train.
func (u *UDP) refuse(errno unix.Errno) {
	u.refused.Add(1)
	if u.segment.Load() {
		u.note(fmt.Sprintf("the kernel refused a train (%v); sending datagrams one by one from now on", errno))
		u.segment.Store(false)
	}
}

// noRoom reports whether an error means that what was sent is merely dropped.
func noRoom(errno unix.Errno) bool {
	return errno == unix.EAGAIN || errno == unix.ENOBUFS || errno == unix.ENOMEM
}

// sendSegmented sends a train by one message.
func (p *udpPath) sendSegmented(at *cursor, tos byte, n, size int) unix.Errno {
	p.iovecs = at.take(p.iovecs[:0], n)
	defer p.forget()
	if len(p.iovecs) > maxIovecs {
		return tooManyParts
	}
	p.ends[0] = len(p.iovecs)
	p.fill(1, p.putControl(tos, size))
	_, errno := ignoringInterrupts(unix.SYS_SENDMSG, p.fd, unsafe.Pointer(&p.msgs[0].Hdr), unix.MSG_DONTWAIT, 0)
	return errno
}

// sendEach sends a train as a message per datagram.
func (p *udpPath) sendEach(at *cursor, tos byte, n, size int) (unsent int, errno unix.Errno) {
	p.iovecs = p.iovecs[:0]
	count := 0
	for ; n > 0; n -= size {
		p.iovecs = at.take(p.iovecs, min(n, size))
		p.ends[count] = len(p.iovecs)
		count++
	}
	defer p.forget()
	p.fill(count, p.putControl(tos, 0))
	for sent := 0; sent < count; {
		r, errno := ignoringInterrupts(unix.SYS_SENDMMSG, p.fd, unsafe.Pointer(&p.msgs[sent]), count-sent, unix.MSG_DONTWAIT)
		if errno != 0 {
			return count - sent, errno
		}
		sent += r
	}
	return 0, 0
}

// ignoringInterrupts makes a system call on a socket until no signal gets in
// its way.
func ignoringInterrupts(call uintptr, fd int, message unsafe.Pointer, c, d int) (int, unix.Errno) {
	for {
		n, errno := callNow(call, uintptr(fd), message, c, d)
		if errno != unix.EINTR {
			return n, errno
		}
	}
}

// fill prepares count messages, whose iovecs stand in p.iovecs, with the same
// address and the first bytes of p.control.
func (p *udpPath) fill(count, control int) {
	if p.msgs == nil {
		p.msgs = make([]unix.Mmsghdr, maxTrain)
	}
	start := 0
	for i := range count {
		h := &p.msgs[i].Hdr
		h.Name, h.Namelen = p.name, p.length
		h.Iov = &p.iovecs[start]
		h.SetIovlen(p.ends[i] - start)
		h.Control = (*byte)(unsafe.Pointer(&p.control[0]))
		h.SetControllen(control)
		start = p.ends[i]
	}
}

// forget drops the references to the caller's bytes.
func (p *udpPath) forget() { clear(p.iovecs) }

// putControl writes the control messages and returns their length: the TOS byte
// and, if size is positive, UDP_SEGMENT.
func (p *udpPath) putControl(tos byte, size int) int {
	level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
	if p.length == unix.SizeofSockaddrInet6 {
		level, kind = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&p.control[0])), len(p.control)*8)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&p.control[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], uint32(tos))
	n := unix.CmsgSpace(4)
	if size > 0 {
		h = (*unix.Cmsghdr)(unsafe.Pointer(&b[n]))
		h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		h.SetLen(unix.CmsgLen(2))
		binary.NativeEndian.PutUint16(b[n+unix.CmsgLen(0):], uint16(size))
		n += unix.CmsgSpace(2)
	}
	return n
}

// address writes the destination in the kernel's form.
func (p *udpPath) address(to netip.AddrPort) {
	var port [2]byte
	binary.BigEndian.PutUint16(port[:], to.Port())
	if to.Addr().Is4() {
		p.addr4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: binary.NativeEndian.Uint16(port[:]), Addr: to.Addr().As4()}
		p.name, p.length = (*byte)(unsafe.Pointer(&p.addr4)), unix.SizeofSockaddrInet4
		return
	}
	p.addr6 = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: binary.NativeEndian.Uint16(port[:]), Addr: to.Addr().As16()}
	p.name, p.length = (*byte)(unsafe.Pointer(&p.addr6)), unix.SizeofSockaddrInet6
}

// cursor is a place in bytes that lie in parts.
type cursor struct {
	parts [][]byte
	used  int // of the first part
}

// take appends the next n bytes, which must be there, to v and moves on.
func (c *cursor) take(v []unix.Iovec, n int) []unix.Iovec {
	for n > 0 {
		b := c.parts[0][c.used:]
		if len(b) > n {
			b = b[:n]
			c.used += n
		} else {
			c.parts, c.used = c.parts[1:], 0
		}
		if len(b) == 0 {
			continue
		}
		v = append(v, unix.Iovec{Base: &b[0]})
		v[len(v)-1].SetLen(len(b))
		n -= len(b)
	}
	return v
}
