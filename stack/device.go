package stack

import (
	"net/netip"
	"time"

	"weft/liveness"
	"weft/topology"
)

// Device is the network below a Host. Package link has implementations and describes
// the methods.
type Device interface {
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
	Write(bufs [][]byte, offset int) (n int, err error)
	MTU() int
	Close() error
}

// SuperDevice is what a Device has besides if it carries super-segments: TCP segments
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

// PathDevice is what a Device has besides if it can choose the paths of packets itself and
// encapsulate them, as that of package uplink does. It takes a packet's path from the
// number that the Host writes into it. Super-segments so stay whole on their way out. It
// counts what goes by which path, and Stats.Paths does not. It carries out Config.Policy,
// if that is one of flowcells or of flows. Packets of other policies the Host encapsulates
// itself (WithPolicy, Config.Policies); the device must let them pass as they are, and
// Stats.Paths counts them.
//
// Calls of SetTopology and SetCarriage do not overlap, and of several changes in a row the
// device may hear of the last only. No method may call the Host.
type PathDevice interface {
	// Encapsulates reports whether it does so. New asks first, and if not, nothing else
	// is called.
	Encapsulates() bool
	// SetTopology tells of every topology that comes into use after the one that both
	// began with, by Host.SetTopology or by own evidence (Config.Liveness). When it has
	// returned, nothing is sent by a path that is dead in t.
	SetTopology(t *topology.Topology) error
	// SetCarriage tells to which racks packets are to go plain, and how long they may be.
	// The first Carriage comes soon after New; until then all is plain. It comes after the
	// topology that it belongs to.
	SetCarriage(c *liveness.Carriage) error
	// Choose has flowcells to a rack, which begin from now on until valid has passed, take
	// a path, by its number. The Host calls it, with a lock held, if its policy samples;
	// until then the device draws paths at random. It fails if the path is not live.
	Choose(rack netip.Prefix, path int, valid time.Duration) error
}
