package topoupdate

import "math/bits"

// bitset is a set of small numbers, of a size fixed when it is made.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) remove(i int)   { s[i/64] &^= 1 << (i % 64) }
func (s bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s bitset) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// each calls f with every member in ascending order until f returns false. f may
// remove what it is called with.
func (s bitset) each(f func(i int) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !f(i*64 + bits.TrailingZeros64(w)) {
				return
			}
		}
	}
}
