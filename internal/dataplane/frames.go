package dataplane

import (
	"math/bits"

	"weft/link"
)

// frame is a packet that a Gateway holds, with what is known of it.
type frame struct {
	b    []byte // the packet, in buf from at on, where a virtio_net_hdr has room before
	buf  []byte
	at   int
	mss  int // of a super-segment; 0 if it is none
	vnet link.VnetHeader
}

// framePool keeps frames for reuse by the length of their buffers: powers of two from
// smallest to 1 MB. The number of frames is bounded by the resequencer's bounds, a
// batch, and one write. It has no lock: its owner, toKernel, is used under that of
// ingress.
type framePool struct {
	free [bufferClasses][]*frame
	used int // that get has returned and put has not taken back
}

const (
	smallest      = 2048
	bufferClasses = 10 // 2 KB to 1 MB
	// keepFree is how many frames of a class wait for reuse at most: enough for
	// a batch and a burst that was held.
	keepFree = 256
)

// CopyBelow is the length of the longest packet, in bytes, that is copied out of a large
// buffer. A longer packet keeps the buffer. Without copying, packets of 1,500 bytes could
// hold 64 KB each, whatever the resequencer's bound.
const CopyBelow = 16 << 10

// class returns the class of buffers for so many bytes.
func class(size int) int {
	return max(bits.Len(uint(size-1))-bits.Len(smallest-1), 0)
}

// get returns a frame with a buffer of at least so many bytes. They are at most 1 MB.
func (p *framePool) get(size int) *frame {
	p.used++
	c := class(size)
	if last := len(p.free[c]) - 1; last >= 0 {
		f := p.free[c][last]
		p.free[c] = p.free[c][:last]
		return f
	}
	return &frame{buf: make([]byte, smallest<<c)}
}

func (p *framePool) put(f *frame) {
	f.b = nil
	p.used--
	if c := class(len(f.buf)); len(p.free[c]) < keepFree {
		p.free[c] = append(p.free[c], f)
	}
}
