package dataplane

import (
	"time"

	"weft/gso"
	"weft/link"
)

// plainOutlet is a Device, which takes packets and no super-segments.
type plainOutlet struct {
	batch
	dev Device
}

func newPlainOutlet(e *Egress, dev Device) *plainOutlet { return &plainOutlet{newBatch(e), dev} }

func (p *plainOutlet) supers() bool           { return false }
func (p *plainOutlet) whole(*Outgoing) bool   { return false }
func (p *plainOutlet) checksum() gso.Checksum { return gso.Complete }
func (p *plainOutlet) end(*Outgoing)          {}

func (p *plainOutlet) add(o *Outgoing, now time.Duration) bool {
	buf, _, end, more := p.fill(o, now)
	if buf == nil {
		return more
	}
	if o.Partial {
		complete(buf[Headroom:end], int(o.CsumStart), int(o.CsumAt))
	}
	if p.full() {
		p.flush()
	}
	return true
}

func (p *plainOutlet) flush() {
	if len(p.views) > 0 {
		p.written(p.write(p.views))
	}
}

func (p *plainOutlet) write(bufs [][]byte) int {
	p.e.show(bufs)
	n, _ := p.dev.Write(bufs, link.SuperHeadroom)
	return n
}
