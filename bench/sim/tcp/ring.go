package tcp

import "math/bits"

const smallWords = 4

// ring is a set of segments in a moving window. A segment's bit is its number modulo the
// ring's size, so the caller that moves the window must clear the segments that leave it.
// Ranges are half open and no longer than the window.
//
// Up to 256 segments are kept inline, since there may be very many rings.
type ring struct {
	small [smallWords]uint64
	big   []uint64 // kept for the next user
	wide  bool     // big is used
}

// reset empties r and makes room for a window of so many segments.
func (r *ring) reset(window int64) {
	r.small = [smallWords]uint64{}
	r.wide = window > smallWords*64
	if !r.wide {
		return
	}
	n := 1 << bits.Len64(uint64(window-1)/64)
	if cap(r.big) < n {
		r.big = make([]uint64, n)
	}
	r.big = r.big[:n]
	clear(r.big)
}

func (r *ring) words() []uint64 {
	if r.wide {
		return r.big
	}
	return r.small[:]
}

// span is the part of a range that lies in one word.
type span struct {
	word int
	mask uint64
	next int64 // where the range goes on
}

func first(n int, from, to int64) span {
	bit := uint(from) & 63
	next := min(from+64-int64(bit), to)
	mask := ^uint64(0) >> (64 - uint(next-from)) << bit
	return span{int(from>>6) & (n - 1), mask, next}
}

func (r *ring) has(i int64) bool {
	w := r.words()
	return w[int(i>>6)&(len(w)-1)]>>(uint(i)&63)&1 != 0
}

func (r *ring) set(from, to int64) {
	w := r.words()
	for from < to {
		s := first(len(w), from, to)
		w[s.word] |= s.mask
		from = s.next
	}
}

func (r *ring) clear(from, to int64) {
	w := r.words()
	for from < to {
		s := first(len(w), from, to)
		w[s.word] &^= s.mask
		from = s.next
	}
}

// count returns how many segments of a range are in the set.
func (r *ring) count(from, to int64) (n int64) {
	w := r.words()
	for from < to {
		s := first(len(w), from, to)
		n += int64(bits.OnesCount64(w[s.word] & s.mask))
		from = s.next
	}
	return n
}

// hole returns the first segment of a range that is not in the set, or its end.
func (r *ring) hole(from, to int64) int64 {
	w := r.words()
	for from < to {
		s := first(len(w), from, to)
		if h := ^w[s.word] & s.mask; h != 0 {
			return from&^63 + int64(bits.TrailingZeros64(h))
		}
		from = s.next
	}
	return to
}

// runStart returns where the run of segments begins that ends before to.
func (r *ring) runStart(from, to int64) int64 {
	for w := r.words(); from < to; {
		base := max((to-1)&^63, from)
		s := first(len(w), base, to)
		if h := ^w[s.word] & s.mask; h != 0 {
			return (to-1)&^63 + int64(bits.Len64(h))
		}
		to = base
	}
	return from
}

// fromTop returns the k-th highest segment of a range; it has that many.
func (r *ring) fromTop(from, to int64, k int) int64 {
	for w := r.words(); ; {
		base := max((to-1)&^63, from)
		s := first(len(w), base, to)
		set := w[s.word] & s.mask
		n := bits.OnesCount64(set)
		if n < k {
			k -= n
			to = base
			continue
		}
		for ; k > 1; k-- {
			set &^= 1 << (bits.Len64(set) - 1)
		}
		return (to-1)&^63 + int64(bits.Len64(set)) - 1
	}
}
