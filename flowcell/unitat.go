package flowcell

import "math"

// The bounds of UnitAt.
const (
	// cellTime is how long a flowcell keeps its path's slowest link busy, in seconds. While
	// it does, no other may pass there, so the paths' queues differ by a few times as much.
	cellTime = 100e-6
	// packetsTo is the rate, in bit/s, up to which a packet is the unit. A link so slow needs
	// no fast sender, and packets spread more evenly.
	packetsTo = 200e6
	// leastCell is the smallest flowcell, in bytes. Smaller ones cost a sender nearly what
	// packets cost.
	leastCell = 16 << 10
)

// UnitAt returns the unit that suits paths whose slowest link has a rate in bit/s. The time
// that a unit takes on that link stays near 100 µs from 1 Gbit/s on: flowcells of 16 and 32 KB,
// and of 64 KB from 3.7 Gbit/s on. Slower links have flowcells of 16 KB, and packets up to 200
// Mbit/s. The sizes are powers of two, so that small
// differences of rates change nothing. No unit is larger, as no super-segment is.
//
// If the rate is not known (0, negative or NaN), the unit is a flowcell of 64 KB. A fabric of
// which nobody has said that it is slow is taken for a fast one: there packets cost a sender
// several times what flowcells cost, while large units on a slow link only spread less evenly.
func UnitAt(rate float64) Unit {
	bytes := FlowcellBytes
	if rate > 0 {
		if rate <= packetsTo {
			return Unit{Kind: UnitPacket}
		}
		size := min(math.Log2(rate*cellTime/8), math.Log2(FlowcellBytes))
		bytes = max(leastCell, 1<<int(math.Round(size)))
	}
	return Unit{Kind: UnitFlowcell, Bytes: bytes}
}
