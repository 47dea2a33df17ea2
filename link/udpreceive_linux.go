package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udpBatch is how many messages a call receives, each a datagram or a train.
const udpBatch = 64

// udpReceiver is the receiving socket and what its calls need, so that none
// allocates.
type udpReceiver struct {
	mu      sync.Mutex
	conn    *net.UDPConn
	raw     syscall.RawConn
	receive func(fd uintptr) bool // a closure, made once
	want    int                   // messages asked for
	got     int
	errno   unix.Errno

	msgs     [udpBatch]unix.Mmsghdr
	iovecs   [udpBatch]unix.Iovec
	names    [udpBatch]unix.RawSockaddrInet6 // large enough for IPv4's
	controls [udpBatch][receiveSpace / 8]uint64

	// overflow is the kernel's count of what did not fit in the socket's
	// buffer, modulo 2^32.
	overflow atomic.Uint64
}

// receiveSpace is room for the control messages UDP_GRO, TOS and SO_RXQ_OVFL,
// in bytes: an int or less each.
const receiveSpace = 3 * 24

func (r *udpReceiver) init(conn *net.UDPConn) (err error) {
	r.conn = conn
	r.raw, err = conn.SyscallConn()
	r.receive = func(fd uintptr) bool {
		r.got, r.errno = ignoringInterrupts(unix.SYS_RECVMMSG, int(fd), unsafe.Pointer(&r.msgs[0]), r.want, unix.MSG_DONTWAIT)
		return r.errno != unix.EAGAIN
	}
	for i := range r.msgs {
		h := &r.msgs[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Iov = &r.iovecs[i]
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&r.controls[i][0]))
	}
	return err
}

// Receive waits for a datagram and returns those that are ready: at most one datagram or
// one train in each buffer, and at most 64 in all. The i-th buffer then holds sizes[i]
// bytes: datagrams of segs[i] bytes each, the last of which may be shorter. All of them
// came from from[i] with tos[i] as DSCP and ECN of their IP headers. All slices are at
// least as long as bufs. Buffers should have at least 65,535 bytes. sizes[i] is 0 for a
// datagram that did not fit, and for an empty one.
//
// It returns net.ErrClosed after Close. It does not return ICMP errors about peers: a
// socket without a peer of its own does not get them (udp(7), IP_RECVERR).
func (u *UDP) Receive(bufs [][]byte, sizes, segs []int, tos []byte, from []netip.AddrPort) (n int, err error) {
	if len(bufs) == 0 {
		return 0, nil
	}
	r := &u.receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	bufs = bufs[:min(len(bufs), udpBatch)]
	r.prepare(bufs)
	err = r.raw.Read(r.receive)
	clear(r.iovecs[:len(bufs)]) // the bytes are the caller's
	switch {
	case u.closed.Load():
		return 0, net.ErrClosed
	case err != nil:
		return 0, err
	case r.errno != 0:
		return 0, fmt.Errorf("udp: receive: %w", r.errno)
	}
	for i := range r.got {
		sizes[i], segs[i], tos[i], from[i] = u.message(i)
	}
	return r.got, nil
}

// prepare sets up a message per buffer; the kernel has changed the lengths.
func (r *udpReceiver) prepare(bufs [][]byte) {
	r.want = len(bufs)
	for i, b := range bufs {
		r.iovecs[i].Base = unsafe.SliceData(b)
		r.iovecs[i].SetLen(len(b))
		h := &r.msgs[i].Hdr
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(receiveSpace)
	}
}

// message reads what the kernel has said about the i-th message.
func (u *UDP) message(i int) (size, seg int, tos byte, from netip.AddrPort) {
	r := &u.receiver
	h := &r.msgs[i].Hdr
	size = int(r.msgs[i].Len)
	seg, tos = r.readControl(r.controls[i][:], int(h.Controllen))
	if h.Flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		u.receiveDrops.Add(1)
		size = 0
	}
	if seg <= 0 || seg > size {
		seg = size
	}
	return size, seg, tos, addrPort(&r.names[i])
}

// readControl reads the first length bytes of control messages.
func (r *udpReceiver) readControl(control []uint64, length int) (seg int, tos byte) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&control[0])), len(control)*8)[:length]
	header := unix.CmsgLen(0)
	for len(b) >= header {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < header || n > len(b) {
			break
		}
		data := b[header:n]
		switch {
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			seg = int(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && len(data) >= 1:
			tos = data[0]
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS && len(data) >= 4:
			tos = byte(binary.NativeEndian.Uint32(data))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			r.overflow.Store(uint64(binary.NativeEndian.Uint32(data)))
		}
		b = b[min(unix.CmsgSpace(n-header), len(b)):]
	}
	return seg, tos
}

// addrPort reads an address in the kernel's form.
func addrPort(a *unix.RawSockaddrInet6) netip.AddrPort {
	var port [2]byte
	binary.NativeEndian.PutUint16(port[:], a.Port)
	p := binary.BigEndian.Uint16(port[:])
	if a.Family == unix.AF_INET {
		a4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom4(a4.Addr), p)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), p)
}
