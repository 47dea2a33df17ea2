package flowcell

// Place says where a datagram belongs in its flow, and by which lane it came. It is for
// datagrams that a sender has numbered so that a receiver restores their order, and rides in
// the IPv4 ID, as Number does. The low 12 bits count the flow's datagrams. The high 4 bits are
// the lane; what takes one lane keeps its order. A device that cuts a super-packet counts up
// in the low bits.
//
// A Place is a hint, which anybody may have written.
type Place uint16

const (
	placeBits = 12
	// maxSuperDatagrams is the most datagrams of a super-packet (Linux's UDP_MAX_SEGMENTS).
	maxSuperDatagrams = 128
	// NoLane is the lane of a sender that has more lanes than there are numbers for.
	NoLane = 15
)

// MakePlace returns the Place of a datagram. at is taken modulo 4,096. lane is at most NoLane.
func MakePlace(at uint32, lane uint8) Place {
	return Place(lane)<<placeBits | Place(at&(1<<placeBits-1))
}

// After returns the number of the datagram in its flow. ref is a number near it: at most
// 2,047 below and 2,048 above.
func (p Place) After(ref uint32) uint32 {
	return ref + uint32(int32((uint32(p)-ref)<<(32-placeBits))>>(32-placeBits))
}

// Lane returns the lane. ok is false if it is not known: where the numbers begin again, a
// device that cut a super-packet may have counted into the lane.
func (p Place) Lane() (lane uint8, ok bool) {
	return uint8(p >> placeBits), p&(1<<placeBits-1) >= maxSuperDatagrams
}
