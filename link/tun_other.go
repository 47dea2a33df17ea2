//go:build !linux

package link

import (
	"errors"
	"net"
	"time"
)

// TUN is a TUN interface; weft has one on Linux only.
type TUN struct{ TUNQueue }

// TUNQueue is one queue of a TUN interface; weft has one on Linux only.
type TUNQueue struct{ none }

// OpenTUN returns an error: TUN interfaces are supported on Linux only.
func OpenTUN(c TUNConfig) (*TUN, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return nil, errors.New("tun: weft opens TUN interfaces on Linux only; use an in-memory device")
}

// Name returns "".
func (*TUN) Name() string { return "" }

// Queues returns 0.
func (*TUN) Queues() int { return 0 }

// Queue returns nil.
func (*TUN) Queue(int) *TUNQueue { return nil }

// SetPayloadMax does nothing.
func (*TUN) SetPayloadMax(int) error { return nil }

// none is a device where there is none.
type none struct{}

// MTU returns 0.
func (*none) MTU() int { return 0 }

// MaxSuper returns 0.
func (*none) MaxSuper() int { return 0 }

// Drops returns 0.
func (*none) Drops() uint64 { return 0 }

// Offloads returns the zero value.
func (*none) Offloads() Offloads { return Offloads{} }

// Read returns net.ErrClosed.
func (*none) Read([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }

// Write returns net.ErrClosed.
func (*none) Write([][]byte, int) (int, error) { return 0, net.ErrClosed }

// ReadSuper returns net.ErrClosed.
func (*none) ReadSuper([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }

// WriteSuper returns net.ErrClosed.
func (*none) WriteSuper([][]byte, int) (int, error) { return 0, net.ErrClosed }

// WriteParts returns net.ErrClosed.
func (*none) WriteParts([][]byte) error { return net.ErrClosed }

// SetReadDeadline does nothing.
func (*none) SetReadDeadline(time.Time) error { return nil }

// Close does nothing.
func (*none) Close() error { return nil }
