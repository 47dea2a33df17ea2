package dataplanetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"weft/link"
)

// SuperMemory is one end of a cable that carries super-segments: packets preceded by
// their virtio_net_hdr.
type SuperMemory struct {
	*link.Memory
	MTUBytes int
	Max      atomic.Int64 // value of MaxSuper
	Refuses  atomic.Bool  // refuses super-segments, from the next one on
	Supers   atomic.Int64 // super-segments that were written
}

// SuperPair returns both ends of a cable.
func SuperPair(mtu int) (a, b *SuperMemory) {
	near, far := link.NewPair(1<<17, 1000)
	a, b = &SuperMemory{Memory: near, MTUBytes: mtu}, &SuperMemory{Memory: far, MTUBytes: mtu}
	a.Max.Store(link.MaxSuperLen)
	b.Max.Store(link.MaxSuperLen)
	return a, b
}

// MTU implements a Device.
func (m *SuperMemory) MTU() int { return m.MTUBytes }

// MaxSuper implements a SuperDevice.
func (m *SuperMemory) MaxSuper() int { return int(m.Max.Load()) }

// ReadSuper implements a SuperDevice.
func (m *SuperMemory) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	n, err := m.Memory.Read(bufs, sizes, offset-link.VnetHeaderLen)
	for i := range n {
		sizes[i] -= link.VnetHeaderLen
	}
	return n, err
}

// WriteSuper implements a SuperDevice.
func (m *SuperMemory) WriteSuper(bufs [][]byte, offset int) (int, error) {
	return m.Memory.Write(bufs, offset-link.VnetHeaderLen)
}

// WriteParts implements a SuperDevice.
func (m *SuperMemory) WriteParts(parts [][]byte) error {
	if m.Refuses.Load() {
		m.Max.Store(0)
		return errors.New("refused")
	}
	m.Supers.Add(1)
	if n, err := m.WriteSuper([][]byte{bytes.Join(append([][]byte{make([]byte, 22)}, parts...), nil)}, 32); n != 1 {
		return fmt.Errorf("%d written: %v", n, err)
	}
	return nil
}
