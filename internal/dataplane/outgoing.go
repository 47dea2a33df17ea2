package dataplane

import (
	"weft/flowcell"
	"weft/internal/checksum"
	"weft/link"
)

// MaxHeaders is the length of the longest headers, of IPv4 and TCP.
const MaxHeaders = 60 + 60

// Outgoing is a packet on its way out, wherever it comes from.
type Outgoing struct {
	Parts [][]byte // of the packet, read only; the first has all headers
	size  int      // bytes of all parts
	// MSS is the payload of each segment of a super-segment; 0 if it is none.
	MSS int
	// narrow says that mss is what the way to the destination carries, not what the
	// sender's TCP has decided on: the segments are to leave one by one.
	narrow bool
	// Partial says that a checksum remains to be completed: that of everything
	// behind the first csumStart bytes, of which the field, csumAt bytes further
	// on, has the pseudo-header's.
	Partial           bool
	CsumStart, CsumAt uint16
}

// Begin makes o a packet of so many bytes whose Parts are to be appended, and that
// needs nothing done to it.
func (o *Outgoing) Begin(size int) { *o = Outgoing{Parts: o.Parts[:0], size: size} }

// segments is how many packets the payload makes.
func (o *Outgoing) segments(payload int) int {
	if o.MSS == 0 || payload <= o.MSS {
		return 1
	}
	return (payload + o.MSS - 1) / o.MSS
}

// fromDevice makes o a packet that a SuperDevice has read, with its header;
// false if that is not one that makes sense.
func (o *Outgoing) fromDevice(h link.VnetHeader, packet []byte) bool {
	if h.Check(len(packet)) != nil {
		return false
	}
	o.Begin(len(packet))
	o.Parts = append(o.Parts, packet)
	if h.GSO() {
		o.MSS = int(h.GSOSize)
	}
	o.Partial = h.Flags&link.VnetNeedsCsum != 0
	o.CsumStart, o.CsumAt = h.CsumStart, h.CsumOffset
	return true
}

// vnet is the header for a device that takes o as it is.
func (o *Outgoing) vnet(pkt *flowcell.Packet) (h link.VnetHeader) {
	if o.Partial {
		h.Flags = link.VnetNeedsCsum
		h.CsumStart, h.CsumOffset = o.CsumStart, o.CsumAt
	}
	if o.MSS != 0 {
		h.GSOType = link.VnetGSOTCPv4
		if o.Parts[0][0]>>4 == 6 {
			h.GSOType = link.VnetGSOTCPv6
		}
		if pkt.Flags&flowcell.FlagCWR != 0 {
			h.GSOType |= link.VnetGSOECN
		}
		h.GSOSize = uint16(o.MSS)
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
