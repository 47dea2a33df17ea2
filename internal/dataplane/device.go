package dataplane

import (
	"net/netip"
	"time"
)

// Device is stack.Device.
type Device interface {
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
	Write(bufs [][]byte, offset int) (n int, err error)
	MTU() int
	Close() error
}

// SuperDevice is stack.SuperDevice.
type SuperDevice interface {
	MaxSuper() int
	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
	WriteSuper(bufs [][]byte, offset int) (n int, err error)
	WriteParts(parts [][]byte) error
}

// chooser is what an egress needs of a stack.PathDevice.
type chooser interface {
	Choose(rack netip.Prefix, path int, valid time.Duration) error
}

// super returns a device as a SuperDevice; nil if it is none.
func super(d Device) SuperDevice {
	s, _ := d.(SuperDevice)
	return s
}
