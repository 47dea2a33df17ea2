package qcn

const (
	// MaxLevel is the strongest feedback: |Fb| in 6 bits.
	MaxLevel = 63

	weightOne = 1 << 8  // a weight of 1
	certain   = 1 << 24 // a probability of 1
)

// Parameters are those of a congestion point.
type Parameters struct {
	Target  uint64  // Q_eq, the bytes of queue that are sought, at least 1 and at most 2^33
	Weight  float64 // w, that of the queue's growth, from 0 to 16
	MinP    float64 // probability at the weakest feedback, from 0 to 1
	MaxP    float64 // and from Plateau on
	Plateau int     // F_bmax, a level from 1 to MaxLevel
	Seed    uint64  // of the random numbers, not 0
}

// Congestion is a congestion point: struct qcn of fabric/bpf/qcn.h. Its first six fields are
// its configuration.
type Congestion struct {
	Target  uint64 // bytes; 0: there is none
	Unit    uint64 // bytes/256 of F_b that count as one level
	Weight  uint32 // 2⁻⁸
	MinP    uint32 // 2⁻²⁴
	MaxP    uint32 // 2⁻²⁴
	Plateau uint32 // level

	Old    uint64 // bytes of queue that the packet before has found
	Random uint64 // the generator's state (xorshift64, Marsaglia 2003), never 0

	Sampled, Lost uint64 // packets that senders are to be told of; those of which nobody heard
}

// NewCongestion returns a congestion point before its first packet.
func NewCongestion(p Parameters) Congestion {
	c := Congestion{
		Target: p.Target, Weight: uint32(p.Weight*weightOne + 0.5),
		MinP: uint32(p.MinP*certain + 0.5), MaxP: uint32(p.MaxP*certain + 0.5), Plateau: uint32(p.Plateau),
		Random: p.Seed,
	}
	// The strongest feedback of the standard: a queue of twice the target, all of which has
	// come since the packet before.
	c.Unit = max(1, c.Target*(weightOne+2*uint64(c.Weight))/MaxLevel)
	return c
}

// Configured returns the state before the first packet.
func (c Congestion) Configured() Congestion {
	c.Old, c.Sampled, c.Lost = 0, 0, 0
	return c
}

// Arrive takes note of a packet that finds so many bytes of queue and returns |F_b| in levels
// from 0, no congestion, to MaxLevel (thesis §5.3.3):
//
//	F_b = -(Q_off + w·Q_delta), Q_off = Q - Q_eq, Q_delta = Q - Q_old
//
// A level that is not whole is rounded up, so that congestion is never 0.
func (c *Congestion) Arrive(queue uint64) (level uint32) {
	over := int64(queue-c.Target)*weightOne + int64(queue-c.Old)*int64(c.Weight)
	c.Old = queue
	if over <= 0 {
		return 0
	}
	return uint32(min((uint64(over)+c.Unit-1)/c.Unit, MaxLevel))
}

// Sample reports whether the sender of a packet, of so many segments, is to be told of a level
// other than 0. Call it for packets that carry data alone: a sender of mere acknowledgements
// has nothing to slow. The probability rises from MinP to MaxP at the plateau. That of a
// super-segment is as many times larger as it has segments: flows are chosen by their shares
// of what is queued.
func (c *Congestion) Sample(level uint32, segments uint64) bool {
	p := uint64(c.MaxP)
	if level < c.Plateau {
		p = uint64(c.MinP) + (p-uint64(c.MinP))*uint64(level)/uint64(c.Plateau)
	}
	c.Random ^= c.Random << 13
	c.Random ^= c.Random >> 7
	c.Random ^= c.Random << 17
	if c.Random>>40 >= p*segments {
		return false
	}
	c.Sampled++
	return true
}
