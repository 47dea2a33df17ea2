package dataplane

import (
	"time"

	"weft/gso"
)

// outlet is the end of egress: a Device (plain.go), a SuperDevice (super.go) or a
// Tunnel (tunnelsend.go). It belongs to its Egress and is called with its lock held.
type outlet interface {
	// supers reports whether super-segments may be handed to the Egress, now.
	supers() bool
	// whole reports whether it takes a super-segment in one piece.
	whole(o *Outgoing) bool
	// checksum says what is left of the checksums of segments that are cut for it.
	checksum() gso.Checksum
	// add takes the next piece of a packet, as o.decision says. It is false if the rest
	// of the packet is dropped, and counted.
	add(o *Outgoing, now time.Duration) bool
	// end is called behind the last piece of each packet.
	end(o *Outgoing)
	// flush writes what was added and not written.
	flush()
	// write writes packets that are ready and lie behind link.SuperHeadroom, and returns
	// how many were taken.
	write(bufs [][]byte) int
}
