package dataplane

import (
	"encoding/binary"
	"net/netip"

	"weft/encap"
	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// maxGrouped bounds the paths of all groups together. A path takes 25 bytes; 1,800
// different sets of live paths in a fat-tree of k=48 have as many. Above the bound
// all pairs look for their groups again.
const maxGrouped = 1 << 20

// group is what all pairs with the same live paths share. It does not change.
type group struct {
	paths.Group
	key   string
	id    uint32     // not 0
	out   []*pathOut // by path number, nil where dead
	pairs int        // that have it
}

// pathOut is one path's outer header and its counters. All groups share it.
type pathOut struct {
	bounce  netip.Addr
	header  encap.Outer
	head    sids // by labels: of the destination what the rack does not say
	index   int  // path number
	packets uint64
	bytes   uint64
}

// has reports whether a path is one of the group's live ones.
func (g *group) has(o *pathOut) bool {
	return o != nil && o.index < len(g.out) && g.out[o.index] == o
}

// unknown is the number of no change. A pair that has it looks for its group.
const unknown = ^uint64(0)

// groupTable has the groups in use.
type groupTable struct {
	address netip.Addr // outer source
	policy  policy.Policy
	carrier encap.Carrier
	apart   bool // flows keep to one component
	byKey   map[string]*group
	outs    map[outKey]*pathOut // of all paths that there ever were
	paths   int                 // of all groups
	ids     *uint32             // given away; all lanes of an egress share it
	resets  uint64              // how often there were too many
	key     []byte              // of the latest asked for
}

// outKey tells paths apart. A fat-tree's host has the same path by one core to all
// racks, by either carrier.
type outKey struct {
	pathKey
	head sids
}

func newGroupTable(address netip.Addr, p policy.Policy, c encap.Carrier) groupTable {
	return groupTable{address: address, policy: p, carrier: c, apart: p.Groups, byKey: make(map[string]*group), outs: make(map[outKey]*pathOut), ids: new(uint32)}
}

// of finds or makes the group of a pair with these paths.
func (t *groupTable) of(table *pathTable, p *pair, set topology.PathSet) *group {
	components := t.components(table, p, set)
	bounce := set.Addr(0).As16()
	key := append(t.key[:0], bounce[:]...)
	key = binary.AppendUvarint(key, uint64(len(p.rack.heads)))
	key = append(key, p.rack.heads...)
	key = paths.AppendKey(key, set, components)
	t.key = key
	if g := t.byKey[string(key)]; g != nil {
		return g
	}
	if t.paths+len(set.Live) > maxGrouped {
		t.reset(table)
	}
	return t.add(string(key), t.make(table.topo, set, components, p.rack))
}

func (t *groupTable) add(key string, g *group) *group {
	*t.ids = max(*t.ids+1, 1)
	g.key, g.id = key, *t.ids
	t.byKey[key] = g
	t.paths += len(g.Weighted)
	return g
}

// components returns those of the pair's paths; nil if the policy takes all paths for
// one.
func (t *groupTable) components(table *pathTable, p *pair, set topology.PathSet) []topology.Group {
	if !t.apart || len(set.Live) < 2 {
		return nil
	}
	if table.quiver == nil {
		table.quiver = table.topo.Quiver()
	}
	if c := table.quiver.Groups(table.self, p.rack.id); len(c) > 1 {
		return c
	}
	return nil
}

func (t *groupTable) make(topo *topology.Topology, set topology.PathSet, components []topology.Group, to *rack) *group {
	g := &group{Group: paths.NewGroup(t.policy.Rule, set, components)}
	if n := len(set.Live); n > 0 {
		g.out = make([]*pathOut, set.Live[n-1]+1)
	}
	for _, n := range set.Live {
		g.out[n] = t.out(topo, set, n, to)
	}
	return g
}

// ofTunnel finds or makes the one group of a tunnel with so many paths.
func (t *groupTable) ofTunnel(n int) *group {
	if g := t.byKey[""]; g != nil {
		return g
	}
	g := &group{Group: paths.Alike(t.policy.Rule, n), out: make([]*pathOut, n)}
	for i := range g.out {
		g.out[i] = &pathOut{index: i}
		t.outs[outKey{pathKey: pathKey{path: i}}] = g.out[i]
	}
	return t.add("", g)
}

// out finds or makes what all groups share of path n of a set.
func (t *groupTable) out(topo *topology.Topology, set topology.PathSet, n int, to *rack) *pathOut {
	k := outKey{pathKey: pathKey{bounce: set.Addr(n)}}
	if to.heads != "" {
		k.head = sidsFrom(to.head(n, set.Count()))
	}
	o := t.outs[k]
	if o == nil {
		o = &pathOut{bounce: k.bounce, header: paths.Outer(topo, t.carrier, t.address, set, n), head: k.head, index: n}
		t.outs[k] = o
	}
	return o
}

// leave takes a pair out of its group. A group goes with its last pair.
func (t *groupTable) leave(p *pair) {
	g := p.group
	if g == nil {
		return
	}
	p.group = nil
	if g.pairs--; g.pairs == 0 && t.byKey[g.key] == g {
		delete(t.byKey, g.key)
		t.paths -= len(g.Weighted)
	}
}

// reset makes all pairs look for their groups again.
func (t *groupTable) reset(table *pathTable) {
	for _, p := range table.pairs {
		t.leave(p)
		p.valid = unknown
	}
	t.resets++
}
