package stack

import (
	"weft/flowcell"
	"weft/internal/checksum"
	"weft/link"
)

// maxHeaders is the length of the longest headers, of IPv4 and TCP.
const maxHeaders = 60 + 60

// outgoing is a packet on its way out, wherever it comes from.
type outgoing struct {
	parts [][]byte // of the packet, read only; the first has all headers
	size  int      // bytes of all parts
	// mss is the payload of each segment of a super-segment; 0 if it is none.
	mss int
	// narrow says that mss is what the way to the destination carries, not what the
	// sender's TCP has decided on: the segments are to leave one by one.
	narrow bool
	// partial says that a checksum remains to be completed: that of everything
	// behind the first csumStart bytes, of which the field, csumAt bytes further
	// on, has the pseudo-header's.
	partial           bool
	csumStart, csumAt uint16
}

// Begin makes o a packet of so many bytes whose Parts are to be appended, and that
// needs nothing done to it.
func (o *outgoing) Begin(size int) { *o = outgoing{parts: o.parts[:0], size: size} }

// segments is how many packets the payload makes.
func (o *outgoing) segments(payload int) int {
	if o.mss == 0 || payload <= o.mss {
		return 1
	}
	return (payload + o.mss - 1) / o.mss
}

// fromDevice makes o a packet that a SuperDevice has read, with its header;
// false if that is not one that makes sense.
func (o *outgoing) fromDevice(h link.VnetHeader, packet []byte) bool {
	if h.Check(len(packet)) != nil {
		return false
	}
	o.Begin(len(packet))
	o.parts = append(o.parts, packet)
	if h.GSO() {
		o.mss = int(h.GSOSize)
	}
	o.partial = h.Flags&link.VnetNeedsCsum != 0
	o.csumStart, o.csumAt = h.CsumStart, h.CsumOffset
	return true
}

// vnet is the header for a device that takes o as it is.
func (o *outgoing) vnet(pkt *flowcell.Packet) (h link.VnetHeader) {
	if o.partial {
		h.Flags = link.VnetNeedsCsum
		h.CsumStart, h.CsumOffset = o.csumStart, o.csumAt
	}
	if o.mss != 0 {
		h.GSOType = link.VnetGSOTCPv4
		if o.parts[0][0]>>4 == 6 {
			h.GSOType = link.VnetGSOTCPv6
		}
		if pkt.Flags&flowcell.FlagCWR != 0 {
			h.GSOType |= link.VnetGSOECN
		}
		h.GSOSize = uint16(o.mss)
		h.HdrLen = uint16(pkt.Length - int(pkt.Payload))
	}
	return h
}

// complete computes a checksum that was partial.
func complete(packet []byte, start, at int) {
	field := start + at
	sum := ^checksum.Fold(checksum.Sum(packet[start:], 0))
	if sum == 0 {
		sum = 0xffff // to UDP 0 means that there is none, to others both are one
	}
	packet[field], packet[field+1] = byte(sum>>8), byte(sum)
}
