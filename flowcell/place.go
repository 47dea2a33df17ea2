package flowcell

// Place says where a datagram belongs in its flow, and by which track it came. It is for
// datagrams that a sender has numbered so that a receiver restores their order, and rides in
// the IPv4 ID, as Number does. The low 12 bits count the flow's datagrams. The high 4 bits are
// the track; what takes one track keeps its order. A device that cuts a super-packet counts up
// in the low bits.
//
// A Place is a hint, which anybody may have written.
type Place uint16

const (
	placeBits = 12
	// maxSuperDatagrams is the most datagrams of a super-packet (Linux's UDP_MAX_SEGMENTS).
	maxSuperDatagrams = 128
	// NoTrack is the track of a sender that has more tracks than there are numbers for.
	NoTrack = 15
)

// MakePlace returns the Place of a datagram. at is taken modulo 4,096. track is at most NoTrack.
func MakePlace(at uint32, track uint8) Place {
	return Place(track)<<placeBits | Place(at&(1<<placeBits-1))
}

// After returns the number of the datagram in its flow. ref is a number near it: at most
// 2,047 below and 2,048 above.
func (p Place) After(ref uint32) uint32 {
	return ref + uint32(int32((uint32(p)-ref)<<(32-placeBits))>>(32-placeBits))
}

// Track returns the track. ok is false if it is not known: where the numbers begin again, a
// device that cut a super-packet may have counted into the track.
func (p Place) Track() (track uint8, ok bool) {
	return uint8(p >> placeBits), p&(1<<placeBits-1) >= maxSuperDatagrams
}
