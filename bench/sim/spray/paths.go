package spray

import (
	"encoding/binary"

	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// pathTable has the paths of all pairs, those that are the same once.
type pathTable struct {
	policy policy.Policy
	byKey  map[string]*paths.Group
	key    []byte // of the latest asked for
}

// maxPaths bounds a pathTable; beyond, it begins anew.
const maxPaths = 1 << 14

// of returns the paths of a set and its components, of which there are none where
// flows do not keep to one. viewer is the host whose numbers of lists the set has, -1 if
// all have the same.
func (t *pathTable) of(viewer topology.NodeID, set topology.PathSet, components []topology.Group) *paths.Group {
	key := binary.AppendVarint(t.key[:0], int64(viewer))
	key = binary.AppendUvarint(key, uint64(set.Count()))
	key = binary.AppendUvarint(key, uint64(set.Bases[0]))
	key = paths.AppendKey(key, set, components)
	t.key = key
	if p := t.byKey[string(key)]; p != nil {
		return p
	}
	if len(t.byKey) >= maxPaths {
		clear(t.byKey)
	}
	g := paths.NewGroup(t.policy.Rule, set, components)
	t.byKey[string(key)] = &g
	return &g
}
