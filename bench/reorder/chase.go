package reorder

import (
	"math"
	"math/rand/v2"
	"time"
)

// Latency is the time to load a cache line whose address the load before it yields, when
// all lines lie within a given number of bytes.
type Latency struct {
	MB    int
	Nanos float64
}

// ChaseSizes are the working sets of PointerChase, in MB.
var ChaseSizes = []int{1, 8, 32, 128, 512}

// PointerChase measures this machine's memory: the cost of looking up a random flow among
// many. It takes the best of several tries.
func PointerChase(sizes []int) (list []Latency) {
	const line = 64 / 8 // words of 8 bytes
	const steps, tries = 1 << 20, 8
	rng := rand.New(rand.NewPCG(1, 0))
	for _, mb := range sizes {
		lines := mb << 20 / 64
		memory := make([]uint64, lines*line)
		for i := range lines {
			memory[i*line] = uint64(i * line)
		}
		for i := lines - 1; i > 0; i-- { // Sattolo's algorithm: one cycle through all
			j := rng.IntN(i)
			memory[i*line], memory[j*line] = memory[j*line], memory[i*line]
		}
		at := chase(memory, 0, min(steps, lines))
		best := time.Duration(math.MaxInt64)
		for range tries {
			start := time.Now()
			at = chase(memory, at, steps/tries)
			best = min(best, time.Since(start))
		}
		sink = at
		list = append(list, Latency{mb, float64(best.Nanoseconds()) / (steps / tries)})
	}
	return list
}

func chase(memory []uint64, at uint64, steps int) uint64 {
	for range steps {
		at = memory[at]
	}
	return at
}

var sink uint64 // or the loads would be optimised away
