package spray

import (
	"encoding/binary"
	"math/bits"

	"weft/conga"
	"weft/drb"
	"weft/policy"
	"weft/topology"
)

// paths is what all pairs with the same live paths share. It does not change.
type paths struct {
	live       []int  // ascending, each once
	alive      []bool // by number
	tags       []uint8
	components []component // at least one; more only where flows keep to one
	// Of flows that keep to one path: who would have it if all were live, and by
	// which it goes if that is dead. A flow leaves its path only when that dies.
	all, rest drb.Selector
}

// component is paths that are alike (DRILL §3.4.1).
type component struct {
	order []int  // as the policy's rule visits them
	upTo  uint64 // weights of this one and those before
}

func (p *paths) has(path int) bool { return path >= 0 && path < len(p.alive) && p.alive[path] }

// byHash is the path of a flow that keeps to one.
func (p *paths) byHash(hash uint64) int {
	if path, ok := p.all.Next(hash); ok && p.has(path) {
		return path
	}
	path, _ := p.rest.Next(bits.RotateLeft64(hash, 32))
	return path
}

// component is that of a flow with this hash (DRILL §3.4.2).
func (p *paths) component(hash uint64) int {
	if len(p.components) == 1 {
		return 0
	}
	at, _ := bits.Mul64(hash, p.components[len(p.components)-1].upTo)
	for i := range p.components {
		if at < p.components[i].upTo {
			return i
		}
	}
	return 0
}

// pathTable has the paths of all pairs, those that are the same once.
type pathTable struct {
	policy policy.Policy
	byKey  map[string]*paths
	key    []byte // of the latest asked for
}

// maxPaths bounds a pathTable; beyond, it begins anew.
const maxPaths = 1 << 14

// of returns the paths of a set and its components, of which there are none where
// flows do not keep to one.
func (t *pathTable) of(set topology.PathSet, components []topology.Group) *paths {
	key := binary.AppendUvarint(t.key[:0], uint64(set.Count()))
	key = binary.AppendUvarint(key, uint64(set.Bases[0]))
	key = appendAll(key, set.Live)
	key = appendAll(key, set.Weights)
	for _, c := range components {
		key = binary.AppendUvarint(key, uint64(c.Weight))
		key = appendAll(key, c.Paths)
	}
	t.key = key
	if p := t.byKey[string(key)]; p != nil {
		return p
	}
	if len(t.byKey) >= maxPaths {
		clear(t.byKey)
	}
	p := t.make(set, components)
	t.byKey[string(key)] = p
	return p
}

func appendAll(key []byte, list []int) []byte {
	key = binary.AppendUvarint(key, uint64(len(list)))
	for _, n := range list {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return key
}

func (t *pathTable) make(set topology.PathSet, components []topology.Group) *paths {
	weighted := set.Weighted()
	p := &paths{live: set.Live, alive: make([]bool, set.Count()), tags: make([]uint8, set.Count())}
	for _, n := range set.Live {
		p.alive[n] = true
		p.tags[n] = conga.Tag(n, set.Count(), n/(set.Count()/set.Bases[0]))
	}
	p.rest = drb.NewSelector(drb.Hash, weighted, 0)
	if set.Weights == nil {
		all := make([]int, set.Count())
		for i := range all {
			all[i] = i
		}
		p.all = drb.NewSelector(drb.Hash, all, 0)
	}
	if len(components) < 2 {
		p.components = []component{{order: t.policy.Rule.Order(set.Bases, weighted)}}
		return p
	}
	upTo := uint64(0)
	for _, c := range components {
		upTo += uint64(c.Weight)
		p.components = append(p.components, component{t.policy.Rule.Order(set.Bases, c.Weighted()), upTo})
	}
	return p
}
