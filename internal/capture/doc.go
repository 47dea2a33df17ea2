// Package capture says of packets what their bytes alone do not: by which path they were
// sent, which flowcell they belong to, how long the resequencer held them and why it let
// them go. It decodes a packet's headers from the outermost to the innermost (Layers),
// annotates it (Annotator), filters (Filter), puts packets of several sources into the
// order of their times (Sorter), and makes a timeline of connections (Timeline).
//
// The package is pure. Packets come from packet sockets (internal/capture/socket), from
// weft's own data path (internal/capture/tap) and from files (internal/capture/file).
package capture

import "time"

// Link is the type of a packet's link layer.
type Link uint8

// The types.
const (
	LinkIP       Link = iota // none: the packet begins with an IP header
	LinkEthernet             // an Ethernet header
)

// Point says where a packet was seen.
type Point uint8

// The points.
const (
	PointDevice    Point = iota // at a device of the kernel
	PointSent                   // by weft, as it handed the packet to its device
	PointArrived                // by weft, before the resequencer
	PointDelivered              // by weft, behind it
)

var pointNames = [...]string{"device", "sent", "arrived", "delivered"}

func (p Point) String() string {
	if int(p) < len(pointNames) {
		return pointNames[p]
	}
	return "unknown"
}

// Record is a packet that was seen.
type Record struct {
	At        time.Time
	Interface string // where, such as p0; of a lab's node h0.0.2:p0
	Point     Point
	Out       bool // it was leaving
	Link      Link
	Bytes     []byte // the beginning of the packet; the Record's owner's
	Length    int    // of the packet, in bytes: at least len(Bytes)

	// What weft knows of it, where Point is not PointDevice.
	HasPath bool          // PointSent into a tunnel: Path is set
	Path    int           // the path's number
	Hold    time.Duration // PointDelivered: how long the resequencer had it
	Cause   string        // PointDelivered: why it was let go, a resequencer.Cause; "" if that is not known
}
