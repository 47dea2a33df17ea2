package slotted

// Lengths counts how often each queue length was seen. Lengths are as in the appendix's
// formula: they include packets that have just arrived and the one that is being sent.
type Lengths []uint64

func (l *Lengths) count(queues []queue) {
	for i := range queues {
		n := int(queues[i].length)
		if n >= len(*l) {
			*l = append(*l, make([]uint64, n+1-len(*l))...)
		}
		(*l)[n]++
	}
}

// Max returns the greatest length.
func (l Lengths) Max() int { return len(l) - 1 }

// Mean returns the mean length.
func (l Lengths) Mean() float64 {
	var n, sum float64
	for q, count := range l {
		n += float64(count)
		sum += float64(q) * float64(count)
	}
	return sum / n
}

// Variance returns the variance of the length.
func (l Lengths) Variance() float64 {
	var n, sum float64
	mean := l.Mean()
	for q, count := range l {
		n += float64(count)
		sum += (float64(q) - mean) * (float64(q) - mean) * float64(count)
	}
	return sum / n
}

// AfterService returns the lengths once every port has sent its packet of the
// slot: (q - 1)⁺.
func (l Lengths) AfterService() Lengths {
	if len(l) < 2 {
		return l
	}
	after := append(Lengths{}, l[1:]...)
	after[0] += l[0]
	return after
}
