//go:build !linux

package link

import (
	"errors"
	"net"
)

// TUN is a TUN interface; weft has one on Linux only.
type TUN struct{}

// OpenTUN returns an error: TUN interfaces are supported on Linux only.
func OpenTUN(c TUNConfig) (*TUN, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return nil, errors.New("tun: weft opens TUN interfaces on Linux only; use an in-memory device")
}

// Name returns "".
func (*TUN) Name() string { return "" }

// MTU returns 0.
func (*TUN) MTU() int { return 0 }

// Drops returns 0.
func (*TUN) Drops() uint64 { return 0 }

// Read returns net.ErrClosed.
func (*TUN) Read([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }

// Write returns net.ErrClosed.
func (*TUN) Write([][]byte, int) (int, error) { return 0, net.ErrClosed }

// Close does nothing.
func (*TUN) Close() error { return nil }
