package link

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// packetReader is a call of Read or ReadSuper in progress. It uses recvmmsg and not a
// ring (TPACKET_V3). A ring costs the same for super-segments, and a tenth less for
// packets of 1500 bytes, but only while it fills: a block that is not full is delivered
// after 1 ms at the earliest, where recvmmsg takes 5 µs.
type packetReader struct {
	mu sync.Mutex
	op func(fd uintptr) (done bool)
	batch
	busy   time.Duration // PacketConfig.BusyPoll
	bufs   [][]byte
	sizes  []int
	offset int
	super  bool // the caller wants the VnetHeader
	n      int
	waited bool // it found nothing at first
	err    error
}

func (r *packetReader) init(op func(uintptr) bool) {
	r.op = op
	r.batch.init()
}

// Read implements the package's Read. It completes checksums, returns a super-segment of
// TCP as one long packet, and drops one of UDP, which is many datagrams.
func (p *Packet) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	return p.read(bufs, sizes, offset, false)
}

// ReadSuper implements the package's ReadSuper. Into buffers that have room for them it also
// reads super-segments of TCP over IPv4 of more than MaxSuperLen bytes, which have no length
// in their IP header (BIG TCP).
func (p *Packet) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if offset < SuperHeadroom {
		return 0, errHeadroom
	}
	return p.read(bufs, sizes, offset, true)
}

// Waited reports whether the last Read or ReadSuper found nothing at first. It is for the
// goroutine that reads.
func (p *Packet) Waited() bool { return p.rd.waited }

func (p *Packet) read(bufs [][]byte, sizes []int, offset int, super bool) (n int, err error) {
	if !haveRoom(bufs, offset) {
		return 0, errNoRoom
	}
	r := &p.rd
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bufs, r.sizes, r.offset, r.super, r.n, r.waited, r.err = bufs, sizes, offset, super, 0, false, nil
	err = p.raw.Read(r.op)
	if err == nil {
		err = r.err
	}
	r.bufs, r.sizes = nil, nil
	r.release(len(bufs))
	return r.n, p.closedOr(err)
}

// readBatch takes what is at hand, a system call's worth. If that is nothing, it looks again
// for as long as it may.
func (p *Packet) readBatch(fd uintptr) (done bool) {
	r := &p.rd
	var until time.Time
	if r.busy > 0 {
		until = time.Now().Add(r.busy)
	}
	want := min(len(r.bufs), batchLen)
	for r.n == 0 && want > 0 {
		for i := range want {
			r.packet(i, r.bufs[i][r.offset:])
		}
		got, errno := r.call(unix.SYS_RECVMMSG, fd, 0, want)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN && r.busy > 0 && !p.closed.Load() && time.Now().Before(until):
			runtime.Gosched()
		case errno == unix.EAGAIN:
			r.waited = true
			return false
		case errno == unix.ENETDOWN && !removed(fd):
			// Said once when the interface goes down. It may come up again.
		case errno == unix.ENETDOWN:
			r.err = errGone
			return true
		case errno != 0:
			r.err = errno
			return true
		}
		for i := range got {
			if !r.take(i) {
				p.drops.Add(1)
			}
		}
	}
	return true
}

// take hands over the packet that was received as number i, and returns false if
// it must be dropped.
func (r *packetReader) take(i int) bool {
	buf := r.bufs[i]
	received := int(r.msgs[i].len) - frameHeaderLen
	if received <= 0 {
		return false
	}
	// The frame may be padded, or may have been longer than the buffer.
	h := ParseVnetHeader((*[VnetHeaderLen]byte)(r.hdrs[i][:])).shift(-ethernetLen)
	size := ipLen(buf[r.offset : r.offset+received])
	if r.super && r.msgs[i].Flags&unix.MSG_TRUNC == 0 && h.long(buf[r.offset:r.offset+received]) {
		size = received
	}
	if size == 0 || size > received {
		return false
	}
	if i != r.n {
		// A packet before this one was dropped: close the gap.
		if len(r.bufs[r.n]) < r.offset+size {
			return false
		}
		copy(r.bufs[r.n][r.offset:], buf[r.offset:r.offset+size])
	}
	if !handOver(h, r.bufs[r.n], r.offset, size, r.super) {
		return false
	}
	r.sizes[r.n] = size
	r.n++
	return true
}

// removed reports whether the interface of a socket is gone for good.
func removed(fd uintptr) bool {
	a, err := unix.Getsockname(int(fd))
	l, ok := a.(*unix.SockaddrLinklayer)
	return err == nil && ok && l.Ifindex <= 0 // -1, after packet_notifier in net/packet/af_packet.c
}
