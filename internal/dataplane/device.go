package dataplane

import (
	"net/netip"
	"time"

	"weft/topology"
)

// Device is the network below a Host; package link has implementations and
// describes the methods.
type Device interface {
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
	Write(bufs [][]byte, offset int) (n int, err error)
	MTU() int
	Close() error
}

// SuperDevice is what a Device is besides if it carries super-segments: TCP segments
// of one flow in one packet of up to 64 KB, which the kernel cuts, or has merged. A
// virtio_net_hdr of 10 bytes stands directly before each packet and says so
// (link.VnetHeader). offset is at least link.SuperHeadroom. Otherwise the methods do
// what those of Device do.
type SuperDevice interface {
	// MaxSuper is the longest super-segment that may be written, in bytes, IP headers
	// included. It is 0 if none may, and can become 0 at any time.
	MaxSuper() int
	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
	WriteSuper(bufs [][]byte, offset int) (n int, err error)
	// WriteParts writes one packet that lies in parts. The first part begins with the
	// virtio_net_hdr and has all headers of IP and TCP.
	WriteParts(parts [][]byte) error
}

// TopologyDevice is what a Device is besides if it chooses paths, as that of package
// uplink does. The Host tells it of every topology that comes into use after the one
// that both began with, by Host.SetTopology or by its own evidence (Config.Liveness).
// Calls do not overlap. Of several changes in a row the device may hear of the last
// only. SetTopology must not call the Host. When it has returned, nothing is sent by
// a path that is dead in t.
type TopologyDevice interface {
	SetTopology(t *topology.Topology) error
}

// ChoiceDevice is what a Device is besides if it chooses the paths of a policy that
// samples, as that of package uplink does. It draws paths at random until the Host,
// which probes them, tells it better.
type ChoiceDevice interface {
	// Choose makes flowcells to a rack that begin within valid, from now on, take a
	// path, by its number. It is called with a lock held, must not call the Host, and
	// fails if the path is not live.
	Choose(rack netip.Prefix, path int, valid time.Duration) error
}

// super returns a device as a SuperDevice; nil if it is none.
func super(d Device) SuperDevice {
	s, _ := d.(SuperDevice)
	return s
}
