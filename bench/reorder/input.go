package reorder

import (
	"math/rand/v2"
	"slices"

	"weft/flowcell"
)

// arrival is a packet of an input, in the order in which they arrive.
type arrival struct {
	flow    uint32
	segment uint32 // its place in the flow; each has its own
	id      uint16 // the IPv4 ID
}

// segmentsPerCell is how many segments of 1,448 bytes 64 KB hold.
const segmentsPerCell = 45

// counted is the ID that a kernel gives the n-th packet it sends.
func counted(n uint32) uint16 { return uint16(n) }

// numbered is the ID that weft gives the n-th packet of a flow cut into whole
// flowcells.
func numbered(n uint32) uint16 {
	return uint16(flowcell.MakeNumber(uint16(n/segmentsPerCell), uint8(n%segmentsPerCell)))
}

// inOrder is one flow on one path.
func inOrder(_, n int, _ *rand.Rand) []arrival {
	list := make([]arrival, n)
	for i := range list {
		list[i] = arrival{segment: uint32(i), id: counted(uint32(i))}
	}
	return list
}

// reordered is one flow of which one packet in a hundred comes late, behind the
// 50 that were sent after it.
func reordered(_, n int, rng *rand.Rand) []arrival {
	const late = 50
	list := inOrder(0, n, nil)
	sortByTime(list, func(i int) int {
		if i > 0 && rng.IntN(100) == 0 {
			return 2*(i+late) + 1 // between two others
		}
		return 2 * i
	})
	return list
}

// cells is one flow whose flowcells take several paths at once, so that they
// arrive interleaved packet by packet. Packets of the last path come skew packets
// later.
func cells(paths, skew int) func(_, n int, _ *rand.Rand) []arrival {
	return func(_, n int, _ *rand.Rand) []arrival {
		list := make([]arrival, n)
		for i := range list {
			list[i] = arrival{segment: uint32(i), id: numbered(uint32(i))}
		}
		round := segmentsPerCell * paths // packets of as many flowcells as there are paths
		sortByTime(list, func(i int) int {
			cell, index := i/segmentsPerCell, i%segmentsPerCell
			path := cell % paths
			at := i/round*round + index*paths + path
			if path == paths-1 {
				at += skew
			}
			return at
		})
		return list
	}
}

// lossy is one flow on one path, cut into flowcells, that loses one packet in a
// hundred and sends it again some 500 packets later, as part of the flowcell
// that it then sends.
func lossy(_, n int, rng *rand.Rand) []arrival {
	const repair = 500
	list := inOrder(0, n, nil)
	lost := make([]bool, n)
	for i := 1; i < n; i++ {
		if rng.IntN(100) == 0 {
			lost[i] = true
			list = append(list, arrival{segment: uint32(i)})
		}
	}
	sortByTime(list, func(i int) int {
		if i >= n {
			return 2*(int(list[i].segment)+repair) + 1 // between two others
		}
		return 2 * i
	})
	kept := list[:0]
	for i, a := range list {
		if lost[a.segment] { // the first of the two that are sent
			lost[a.segment] = false
			continue
		}
		a.id = numbered(uint32(i))
		kept = append(kept, a)
	}
	return kept
}

// burst is how many packets of a flow arrive in a row where flows are many.
const burst = 16

// bursts is many flows, each in order: every flow sends one packet first, so
// that all are known, and then n packets come from whoever is drawn next.
func bursts(draw func(flows int, rng *rand.Rand) func() int) func(flows, n int, rng *rand.Rand) []arrival {
	return func(flows, n int, rng *rand.Rand) []arrival {
		list := make([]arrival, 0, flows+n)
		for f := range flows {
			list = append(list, arrival{flow: uint32(f)})
		}
		next := make([]uint32, flows)
		who := draw(flows, rng)
		for len(list) < flows+n {
			f := who()
			for range min(burst, flows+n-len(list)) {
				next[f]++
				list = append(list, arrival{flow: uint32(f), segment: next[f], id: counted(next[f])})
			}
		}
		return list
	}
}

func uniform(flows int, rng *rand.Rand) func() int {
	return func() int { return rng.IntN(flows) }
}

// zipf draws by popularity, with exponent 1.1.
func zipf(flows int, rng *rand.Rand) func() int {
	z := rand.NewZipf(rng, 1.1, 1, uint64(flows-1))
	return func() int { return int(z.Uint64()) }
}

// sortByTime puts list into the order of the times at which its elements
// arrive, which are small and not negative.
func sortByTime(list []arrival, time func(i int) int) {
	keys := make([]uint64, len(list))
	for i := range keys {
		keys[i] = uint64(time(i))<<32 | uint64(i)
	}
	slices.Sort(keys)
	sorted := make([]arrival, len(list))
	for i, k := range keys {
		sorted[i] = list[uint32(k)]
	}
	copy(list, sorted)
}
