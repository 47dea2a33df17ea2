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

// SuperDevice is a Device that also carries super-segments: TCP segments of one flow in
// one packet of up to 64 KB, which the kernel cuts, or has merged. A virtio_net_hdr of 10
// bytes (link.VnetHeader) stands directly before each packet and describes it. offset is
// at least link.SuperHeadroom. Otherwise the methods do the same as those of Device.
type SuperDevice interface {
	// MaxSuper is the longest super-segment that may be written, in bytes, IP headers
	// included. 0 means none; it can become 0 at any time.
	MaxSuper() int
	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
	WriteSuper(bufs [][]byte, offset int) (n int, err error)
	// WriteParts writes one packet in parts. The first part begins with the
	// virtio_net_hdr and holds all headers of IP and TCP.
	WriteParts(parts [][]byte) error
}

// QueueDevice is a Device, or an Underlay, that knows its queue. TCP keeps that short: a
// connection sends no more while a millisecond's worth at its rate waits there, and at
// least six packets. Without that its data waits in the queue of its own host, and is dropped
// there. Linux calls it TCP small queues.
type QueueDevice interface {
	// Holds reports whether at least so many bytes were written and have not left yet, as
	// near as the device knows. It is called for each segment that is sent, by many
	// goroutines, and must not call the Host.
	Holds(bytes int) bool
}

// PathDevice is a Device that can also choose the paths of packets and encapsulate them,
// as package uplink's does. It takes a packet's path from the number that the Host writes
// into the packet. So super-segments stay whole on their way out. It counts packets by
// path itself, and Stats.Paths does not. It carries out Config.Policy if that is a policy
// of flowcells or of flows. The Host encapsulates packets of other policies itself
// (WithPolicy, Config.Policies); the device must let them pass unchanged, and Stats.Paths
// counts them.
//
// Calls of SetTopology and SetCarriage do not overlap. Of several changes in a row the
// device may get only the last. No method may call the Host.
type PathDevice interface {
	// Encapsulates reports whether the device encapsulates. New asks this first. If it is
	// false, no other method is called.
	Encapsulates() bool
	// SetTopology gets every topology that replaces the initial one, by Host.SetTopology
	// or by the Host's own evidence (Config.Liveness). When it has returned, nothing is
	// sent by a path that is dead in t.
	SetTopology(t *topology.Topology) error
	// SetCarriage says to which racks packets go plain, and how long packets may be. The
	// first Carriage comes soon after New; until then all packets go plain. A Carriage
	// comes after its topology.
	SetCarriage(c *liveness.Carriage) error
	// Choose makes flowcells to a rack that begin within valid take a path, by its
	// number. The Host calls it, with a lock held, if its policy samples. Before the
	// first call the device draws paths at random. It fails if the path is not live.
	Choose(rack netip.Prefix, path int, valid time.Duration) error
}
