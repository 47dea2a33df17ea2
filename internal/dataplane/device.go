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

// SuperDevice is what a Device has besides if it carries super-segments: TCP
// segments of one flow in one packet of up to 64 KB, which the kernel cuts, or
// has merged. Directly before each packet stands a virtio_net_hdr of 10 bytes
// that says so, see link.VnetHeader; offset is at least
// link.SuperHeadroom. What the
// methods share with those of Device, they mean alike.
type SuperDevice interface {
	// MaxSuper is the longest super-segment that may be written, IP headers
	// included, in bytes; 0 if none may, and it can become 0 at any time.
	MaxSuper() int
	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
	WriteSuper(bufs [][]byte, offset int) (n int, err error)
	// WriteParts writes one packet that lies in parts: the first begins with
	// the virtio_net_hdr and has at least all headers of IP and TCP.
	WriteParts(parts [][]byte) error
}

// TopologyDevice is what a Device has besides if it chooses paths, as that of
// package uplink does where the uplink encapsulates. The Host tells it of every
// topology that comes into use after the one that both began with, be it by
// Host.SetTopology or by own evidence (Config.Liveness). Calls do not overlap,
// and of several changes in a row it may hear of the last only. SetTopology must
// not call the Host; when it has returned, nothing is sent by a path that is dead
// in t.
type TopologyDevice interface {
	SetTopology(t *topology.Topology) error
}

// ChoiceDevice is what a Device has besides if it chooses the paths of a policy
// that samples, as that of package uplink does where the uplink encapsulates: it
// draws them at random until it is told better. The Host, which probes, tells it.
type ChoiceDevice interface {
	// Choose has flowcells to a rack, which begin from now on until valid has
	// passed, take a path, by its number. It is called with a lock held, must not
	// call the Host, and fails if the path is not live.
	Choose(rack netip.Prefix, path int, valid time.Duration) error
}

// super returns what a device has besides, nil if nothing.
func super(d Device) SuperDevice {
	s, _ := d.(SuperDevice)
	return s
}
