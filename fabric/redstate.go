package fabric

const (
	redFraction = 8       // bits of the average behind the byte
	redOne      = 1 << 16 // a weight, or the probability at Max, of 1
	redIdleBits = 16      // after 2¹⁶ packets' time of rest nothing is left
)

// redState is struct red of bpf/red.h: RED at a port. The first six fields, and Mark, are
// its configuration.
type redState struct {
	Min, Max uint64 // bytes/256
	Limit    uint64 // bytes/256 of average from which all packets are dropped
	Slot     uint64 // ns of a packet at the port's rate
	Weight   uint32 // 2⁻¹⁶; 0: there is no RED
	MaxP     uint32 // 2⁻¹⁶
	Mark     uint32 // 1: packets that are capable of ECN are marked
	Since    uint32 // packets since the last chosen one, which is counted; 0: none was chosen in this congestion

	Average uint64 // bytes/256
	Random  uint64 // the generator's state (xorshift64, Marsaglia 2003), never 0

	Early, Forced uint64 // packets dropped
}

// configured returns the state before the first packet.
func (s redState) configured() redState {
	s.Since, s.Average, s.Early, s.Forced = 0, 0, 0, 0
	return s
}

// rest lets the average fall while the queue is empty, for so many ns, by one step for each
// packet that could have been sent (Floyd and Jacobson §4).
func (s *redState) rest(idle uint64) {
	slots := idle / s.Slot
	if slots>>redIdleBits != 0 {
		s.Average = 0
		return
	}
	for factor := uint64(redOne - s.Weight); slots > 0; slots >>= 1 {
		if slots&1 != 0 {
			s.Average = s.Average * factor >> 16
		}
		factor = factor * factor >> 16
	}
}

// at returns what is to be told of it.
func (s redState) at() PortRED {
	return PortRED{Average: s.Average >> redFraction, Min: s.Min >> redFraction, Max: s.Max >> redFraction,
		EarlyDrops: s.Early, ForcedDrops: s.Forced}
}
