package encap

const (
	replayWords = 128 // a power of 2: 8,192 bits
	// replayDepth is how far behind the highest number one may be. The word
	// that is being filled may not serve the oldest numbers as well.
	replayDepth = (replayWords - 1) * 64
)

// replayWindow remembers which numbers have been seen (RFC 6479). It goes 8,128 numbers
// back. Paths of unequal delay reorder by the difference of their delays times the packet
// rate; 8,128 packets are 10 ms at 10 Gbit/s. Older numbers count as seen. The zero value
// has seen none. It is not safe for concurrent use.
type replayWindow struct {
	highest uint64
	bits    [replayWords]uint64 // bit n mod 8,192 stands for n
}

// accept marks n as seen. It returns false if n was seen, or may have been. Only the number
// of a genuine datagram may be marked: a forged one would shut out all below it.
func (w *replayWindow) accept(n uint64) bool {
	if n > w.highest {
		from, to := w.highest/64, n/64
		for i := range min(to-from, replayWords) {
			w.bits[(to-i)%replayWords] = 0
		}
		w.highest = n
	} else if w.highest-n >= replayDepth {
		return false
	}
	word, bit := &w.bits[n/64%replayWords], uint64(1)<<(n%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
