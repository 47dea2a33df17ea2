package paths

import (
	"encoding/binary"
	"math/bits"

	"weft/conga"
	"weft/drb"
	"weft/topology"
)

// Group is what all pairs with the same live paths share. It does not change, and its
// slices must not be changed.
type Group struct {
	Live       []int       // numbers of the live paths, ascending
	Weighted   []int       // the same, each as often as it weighs
	Tags       []uint8     // CONGA's tag of each live path (conga.Tag), by path number; nil from Alike
	Components []Component // at least one; more only where each flow keeps to one

	alive  []bool // by number
	number uint64 // of paths, live or not; 0 where they have weights
}

// Component is paths that are alike (DRILL §3.4.1).
type Component struct {
	Order []int  // as the policy's rule visits them
	upTo  uint64 // weights of this one and those before
}

// NewGroup returns the group of a set of paths, in the order of a rule. components are
// the set's symmetric components if each flow keeps to one of several; otherwise nil.
func NewGroup(rule drb.Rule, set topology.PathSet, components []topology.Group) Group {
	count := set.Count()
	g := Group{Live: set.Live, Weighted: set.Weighted(), Tags: make([]uint8, count), alive: make([]bool, count)}
	for _, n := range set.Live {
		g.alive[n] = true
		g.Tags[n] = Tag(set, n)
	}
	if set.Weights == nil {
		g.number = uint64(count)
	}
	if len(components) < 2 {
		g.Components = []Component{{Order: set.Ordered(rule.Order, g.Weighted)}}
		return g
	}
	upTo := uint64(0)
	for _, c := range components {
		upTo += uint64(c.Weight)
		g.Components = append(g.Components, Component{set.Ordered(rule.Order, c.Weighted()), upTo})
	}
	return g
}

// Alike returns the group of so many paths, all live and of equal weight.
func Alike(rule drb.Rule, paths int) Group {
	g := Group{Live: make([]int, paths), alive: make([]bool, paths), number: uint64(paths)}
	for i := range g.Live {
		g.Live[i], g.alive[i] = i, true
	}
	g.Weighted = g.Live
	g.Components = []Component{{Order: rule.Order([]int{paths}, g.Live)}}
	return g
}

// Count returns how many paths there are, live or not.
func (g *Group) Count() int { return len(g.alive) }

// Has reports whether a path is live.
func (g *Group) Has(path int) bool { return uint(path) < uint(len(g.alive)) && g.alive[path] }

// ByHash returns the path of a flow that keeps to one path; ok is false if none is live.
// A flow leaves its path only when the path dies, and returns when it comes back: only
// flows of dead paths choose among the others.
func (g *Group) ByHash(hash uint64) (path int, ok bool) {
	if g.number > 0 {
		if n := int(hash % g.number); g.alive[n] {
			return n, true
		}
	}
	if len(g.Weighted) == 0 {
		return 0, false
	}
	return g.Weighted[bits.RotateLeft64(hash, 32)%uint64(len(g.Weighted))], true
}

// Component returns the number of the component of a flow with this hash (DRILL
// §3.4.2).
func (g *Group) Component(hash uint64) int {
	if len(g.Components) == 1 {
		return 0
	}
	at, _ := bits.Mul64(hash, g.Components[len(g.Components)-1].upTo)
	for i := range g.Components {
		if at < g.Components[i].upTo {
			return i
		}
	}
	return 0
}

// Tag returns CONGA's tag of path n of a set.
func Tag(set topology.PathSet, n int) uint8 {
	return conga.Tag(n, set.Count(), set.Uplink(n))
}

// AppendKey appends to key a code of a set's live paths, their weights and their
// components. Two sets with the same first path, live or not, have the same code only if all
// of these are the same. A topology has fewer than 2^16 paths to a rack.
func AppendKey(key []byte, set topology.PathSet, components []topology.Group) []byte {
	key = binary.AppendUvarint(key, uint64(set.List()))
	key = appendNumbers(key, set.Live)
	key = binary.AppendUvarint(key, uint64(len(set.Weights)))
	for _, w := range set.Weights {
		key = binary.AppendUvarint(key, uint64(w))
	}
	for _, c := range components {
		key = binary.AppendUvarint(key, uint64(c.Weight))
		key = appendNumbers(key, c.Paths)
	}
	return key
}

func appendNumbers(key []byte, list []int) []byte {
	key = binary.AppendUvarint(key, uint64(len(list)))
	for _, n := range list {
		key = append(key, byte(n>>8), byte(n))
	}
	return key
}

// Seeds returns the seeds of a pair's selectors for data and for acknowledgements. They
// depend on the pair's own seed, on how often its paths have changed, and on the
// component. So selectors of different pairs and kinds do not start in step, and a pair
// does not start at the same place again and again.
func Seeds(pair, changes uint64, component int) (data, ack uint64) {
	data = pair + changes*0x9e3779b97f4a7c14 + uint64(component)*0xd1342543de82ef96
	return data, data ^ 1<<63
}
