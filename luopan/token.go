package luopan

import "math/rand/v2"

// A token is 42 random bits, the number of a destination's slot, and that of the sample, so
// that a probe is found in O(1). Answers whose token is not outstanding are ignored.
const (
	slotBits  = 16
	indexBits = 6 // MaxSamples
)

// source is where all that is random comes from.
type source interface{ Uint64() uint64 }

// newSource is cryptographically strong: seeing paths and tokens tells nobody
// those to come.
func newSource(seed uint64) source {
	var key [32]byte
	mix := rand.NewPCG(seed, seed)
	for i := range key {
		key[i] = byte(mix.Uint64() >> 32)
	}
	return rand.NewChaCha8(key)
}

func newToken(random source, slot int32, index int) uint64 {
	return random.Uint64()<<(slotBits+indexBits) | uint64(slot)<<indexBits | uint64(index)
}

func openToken(token uint64) (slot, index int) {
	return int(token >> indexBits & (1<<slotBits - 1)), int(token & (1<<indexBits - 1))
}

// below returns a number from 0 to n-1, for n up to 2³², by multiplication. That
// some are likelier by n/2³² does not matter here.
func below(random source, n int) int {
	return int(random.Uint64() >> 32 * uint64(n) >> 32)
}
