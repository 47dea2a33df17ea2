package link

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packetWriter is a call of Write, WriteSuper or WriteParts in progress.
type packetWriter struct {
	mu        sync.Mutex
	batched   func(fd uintptr)
	scattered func(fd uintptr)
	// send is the system call; tests put others in its place.
	send func(b *batch, fd uintptr, first, end int) (n int, errno unix.Errno)
	batch
	bufs   [][]byte
	offset int
	super  bool // packets are preceded by a VnetHeader
	n      int
	full   bool // there was no room for a packet
	gso    [batchLen]bool
	parts  []unix.Iovec
}

func (w *packetWriter) init(batched, scattered func(uintptr)) {
	w.batched, w.scattered = batched, scattered
	w.send = func(b *batch, fd uintptr, first, end int) (int, unix.Errno) {
		return b.call(unix.SYS_SENDMMSG, fd, first, end)
	}
	w.batch.init()
}

// Write implements the package's Write, a system call for up to 64 packets.
func (p *Packet) Write(bufs [][]byte, offset int) (n int, err error) {
	return p.write(bufs, offset, false)
}

// WriteSuper implements the package's WriteSuper, a system call for up to 64
// packets.
func (p *Packet) WriteSuper(bufs [][]byte, offset int) (n int, err error) {
	if offset < SuperHeadroom {
		return 0, errHeadroom
	}
	return p.write(bufs, offset, true)
}

func (p *Packet) write(bufs [][]byte, offset int, super bool) (n int, err error) {
	w := &p.wr
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bufs, w.offset, w.super, w.n = bufs, offset, super, 0
	err = p.send(w.batched)
	w.bufs = nil
	w.release(len(bufs))
	p.drops.Add(uint64(len(bufs) - w.n))
	return w.n, err
}

// WriteParts implements the package's WriteParts, by one system call.
func (p *Packet) WriteParts(parts [][]byte) error {
	if !validParts(parts) {
		return errParts
	}
	w := &p.wr
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bufs, w.n, w.full = parts, 0, false
	err := p.send(w.scattered)
	w.bufs = nil
	clear(w.parts)
	if w.n == 0 {
		p.drops.Add(1)
		if err == nil && w.full {
			err = errFull
		}
	}
	return err
}

var errFull = errors.New("packet: the uplink's queue is full")

// send calls f with the descriptor for sending. Without a gateway nothing is sent.
func (p *Packet) send(f func(fd uintptr)) error {
	switch {
	case p.closed.Load():
		return net.ErrClosed
	case p.out == nil:
		return nil
	}
	return p.out.use(f)
}

func (p *Packet) writeBatch(fd uintptr) {
	w := &p.wr
	macs := p.next.macs.Load()
	filled := 0
	for _, b := range w.bufs {
		if filled == batchLen {
			p.flush(fd, filled)
			filled = 0
		}
		if w.frame(filled, b, *macs) {
			filled++
		}
	}
	p.flush(fd, filled)
}

// frame makes b packet i of the batch, and returns false if that is malformed.
func (w *packetWriter) frame(i int, b []byte, macs [12]byte) bool {
	if len(b) <= w.offset {
		return false
	}
	var h VnetHeader
	if w.super {
		h = ParseVnetHeader((*[VnetHeaderLen]byte)(b[w.offset-VnetHeaderLen:]))
	}
	packet := b[w.offset:]
	if !header(&w.hdrs[i], h, packet, len(packet), macs) {
		return false
	}
	w.gso[i] = h.GSO()
	w.packet(i, packet)
	return true
}

// header puts before a packet of size bytes, the first of which are in packet,
// what the kernel wants there.
func header(to *[frameHeaderLen]byte, h VnetHeader, packet []byte, size int, macs [12]byte) bool {
	if h.Check(size) != nil {
		return false
	}
	var ethertype uint16
	switch packet[0] >> 4 {
	case 4:
		ethertype = unix.ETH_P_IP
	case 6:
		ethertype = unix.ETH_P_IPV6
	default:
		return false
	}
	h.shift(ethernetLen).Put((*[VnetHeaderLen]byte)(to[:]))
	copy(to[VnetHeaderLen:], macs[:])
	binary.BigEndian.PutUint16(to[VnetHeaderLen+12:], ethertype)
	return true
}

// flush sends the batch. A packet that the kernel does not take is left out.
func (p *Packet) flush(fd uintptr, filled int) {
	w := &p.wr
	for first := 0; first < filled; {
		n, errno := w.send(&w.batch, fd, first, filled)
		p.out.sent(n, w.bytes(first, first+n))
		w.n += n
		first += n
		if errno != 0 && errno != unix.EINTR {
			p.failed(errno, w.gso[first])
			if Denied(errno) {
				p.denied.Add(1)
			}
			first++
		}
	}
}

// Denied reports whether an error in sending says that the host's own kernel has dropped the
// packet: a filter or a program at its egress, or a queue that is full. Others, such as that of a
// device that is down, do not.
func Denied(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOBUFS) }

// Denied returns how many of Write's packets had an error of which Denied is true.
func (p *Packet) Denied() uint64 { return p.denied.Load() }

// failed says what an error in sending means. Those that a full queue makes
// (EAGAIN, ENOBUFS) are plain drops.
func (p *Packet) failed(errno unix.Errno, gso bool) {
	switch errno {
	case unix.EINVAL, unix.EIO, unix.EOPNOTSUPP:
		if gso {
			p.super.refuse(errno)
		}
	}
}

func (p *Packet) writeScattered(fd uintptr) {
	w := &p.wr
	first := w.bufs[0]
	h := ParseVnetHeader((*[VnetHeaderLen]byte)(first))
	size := partsLen(w.bufs) - VnetHeaderLen
	if size > MaxSuperLen || !header(&w.hdrs[0], h, first[VnetHeaderLen:], size, *p.next.macs.Load()) {
		return
	}
	w.parts = append(w.parts[:0], bytesOf(w.hdrs[0][:]), bytesOf(first[VnetHeaderLen:]))
	for _, b := range w.bufs[1:] {
		if len(b) > 0 {
			w.parts = append(w.parts, bytesOf(b))
		}
	}
	msg := unix.Msghdr{Iov: &w.parts[0]}
	msg.SetIovlen(len(w.parts))
	for {
		_, errno := callNow(unix.SYS_SENDMSG, fd, unsafe.Pointer(&msg), unix.MSG_DONTWAIT, 0)
		switch errno {
		case 0:
			w.n++
			p.out.sent(1, size)
		case unix.EINTR:
			continue
		default:
			p.failed(errno, h.GSO())
			w.full = errno == unix.EAGAIN || errno == unix.ENOBUFS
		}
		return
	}
}
