package dataplane

import (
	"weft/flowcell"
	"weft/gso"
	"weft/link"
	"weft/resequencer/gro"
)

// toKernel is the sink of a Gateway: the kernel, which delivers to programs. It is
// used by ingress, under its lock.
type toKernel struct {
	dev   SuperDevice
	pool  framePool
	slots []*frame // lent to the reader
	train gro.Train
	held  []*frame // of the train under way
	parts [][]byte // of one packet; the first is left for its first frame
	drops uint64   // refused by the device

	segmenter gso.Segmenter
	segment   []byte // one packet, behind headroom
}

func newToKernel(dev SuperDevice) *toKernel {
	return &toKernel{dev: dev, parts: make([][]byte, 1), segment: make([]byte, link.SuperHeadroom+SuperBuffer)}
}

func (w *toKernel) Buffer(slot, size int) []byte {
	for len(w.slots) <= slot {
		w.slots = append(w.slots, nil)
	}
	if w.slots[slot] == nil {
		w.slots[slot] = w.pool.get(size)
	}
	return w.slots[slot].buf[:size]
}

func (w *toKernel) Packet(_ *flowcell.Packet, a *Arrived) *frame {
	var f *frame
	if a.Alone && len(a.Bytes) > CopyBelow {
		f = w.slots[a.Slot]
		f.at = cap(f.buf) - cap(a.Bytes)
		w.slots[a.Slot] = nil
	} else {
		f = w.pool.get(link.VnetHeaderLen + len(a.Bytes))
		f.at = link.VnetHeaderLen
		copy(f.buf[f.at:], a.Bytes)
	}
	f.b = f.buf[f.at : f.at+len(a.Bytes)]
	f.mss, f.vnet = a.MSS, a.vnet
	return f
}

// Deliver writes what is ready. Segments that continue each other become one packet.
func (w *toKernel) Deliver(ready []*frame) (merged int) {
	for _, f := range ready {
		switch {
		case w.dev.MaxSuper() < gro.MaxLength:
			w.write(f)
		case len(w.held) > 0 && w.train.Add(f.b, f.mss):
			w.held = append(w.held, f)
			merged++
		default:
			w.finish()
			w.train.Start(f.b, f.mss)
			w.held = append(w.held, f)
		}
	}
	w.finish()
	return merged
}

// finish writes the train under way.
func (w *toKernel) finish() {
	if len(w.held) == 0 {
		return
	}
	first := w.held[0]
	if !w.train.Finish(first.b) {
		w.write(first)
		w.held = w.held[:0]
		return
	}
	h := superHeader(first.b, &w.train)
	for _, f := range w.held[1:] {
		w.parts = append(w.parts, f.b[w.train.HeaderLen():])
	}
	w.writeParts(first, h)
	for _, f := range w.held {
		w.pool.put(f)
	}
	w.held = w.held[:0]
}

// write writes a packet as it came and takes it back.
func (w *toKernel) write(f *frame) {
	defer w.pool.put(f)
	if f.mss > 0 && len(f.b) > w.dev.MaxSuper() {
		w.cut(f)
		return
	}
	w.writeParts(f, f.vnet)
}

// writeParts writes one packet: this header, the first frame and w.parts.
func (w *toKernel) writeParts(first *frame, h link.VnetHeader) {
	b := first.buf[first.at-link.VnetHeaderLen : first.at+len(first.b)]
	h.Put((*[link.VnetHeaderLen]byte)(b))
	w.parts[0] = b
	if err := w.dev.WriteParts(w.parts); err != nil {
		w.drops++
	}
	clear(w.parts)
	w.parts = w.parts[:1]
}

// cut writes a super-segment's segments one by one, since the device takes nothing
// longer.
func (w *toKernel) cut(f *frame) {
	if err := w.segmenter.Start([][]byte{f.b}, f.mss, gso.Complete); err != nil {
		w.drops++
		return
	}
	for w.segmenter.Left() > 0 {
		n := w.segmenter.Next(w.segment[link.SuperHeadroom:])
		if n == 0 {
			return
		}
		clear(w.segment[link.SuperHeadroom-link.VnetHeaderLen : link.SuperHeadroom])
		if k, err := w.dev.WriteSuper([][]byte{w.segment[:link.SuperHeadroom+n]}, link.SuperHeadroom); k == 0 || err != nil {
			w.drops++
		}
	}
}
