package dataplane

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"weft/conga"
	"weft/encap"
	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// maxGrouped bounds the paths of all groups together: 25 bytes each, and what
// 1,800 different sets of live paths in a fat-tree of k=48 have. Above it, all
// pairs look for their groups again.
const maxGrouped = 1 << 20

// group is what all pairs with the same live paths share. It does not change.
type group struct {
	key        string
	id         uint32      // not 0
	components []component // at least one; more only where the policy keeps flows to one
	live       []int       // ascending, repeated by weight: for flows that keep to one path
	paths      []int       // ascending, each once
	tags       []uint8     // by path number, see conga.Tag; nil in a tunnel
	numbers    int         // of paths, live or not; 0 where they have weights
	out        []*pathOut  // by path number, nil where dead
	pairs      int         // that have it
}

// component is paths that are alike (DRILL §3.4.1).
type component struct {
	order []int  // as the policy's rule visits them
	upTo  uint64 // weights of this one and those before
}

// pathOut is one path's outer header and its counters. All groups share it.
type pathOut struct {
	bounce  netip.Addr
	header  encap.Outer
	head    sids // by SRv6: of the destination what the rack does not say
	index   int  // path number
	packets uint64
	bytes   uint64
}

// has reports whether a path is one of the group's live ones.
func (g *group) has(o *pathOut) bool {
	return o != nil && o.index < len(g.out) && g.out[o.index] == o
}

// tag is what CONGA calls a path.
func (g *group) tag(path int) uint8 { return g.tags[path] }

// tagOf is that of a path of a set.
func tagOf(set topology.PathSet, path int) uint8 {
	return conga.Tag(path, set.Count(), path/(set.Count()/set.Bases[0]))
}

// tagsOf has a bit for the tag of each path of a set, those in no use, too.
func tagsOf(set topology.PathSet) (tags uint16) {
	for n := range set.Count() {
		tags |= 1 << tagOf(set, n)
	}
	return tags
}

// byHash is the path of a flow that keeps to one, nil if none is live. A flow
// leaves its path only when that dies, and comes back to it: the dead path's
// flows alone choose among the others.
func (g *group) byHash(hash uint64) *pathOut {
	if len(g.live) == 0 {
		return nil
	}
	if g.numbers > 0 {
		if n := int(hash % uint64(g.numbers)); n < len(g.out) && g.out[n] != nil {
			return g.out[n]
		}
		hash = bits.RotateLeft64(hash, 32)
	}
	return g.out[g.live[hash%uint64(len(g.live))]]
}

// component returns the component of a flow with this hash (DRILL §3.4.2).
func (g *group) component(hash uint64) int {
	at, _ := bits.Mul64(hash, g.components[len(g.components)-1].upTo)
	for i := range g.components {
		if at < g.components[i].upTo {
			return i
		}
	}
	return 0
}

// unknown is the number of no change: a pair with it looks for its group.
const unknown = ^uint64(0)

// encapsulate writes the outer header of a packet to a rack before it, see
// encap.Outer.
func (o *pathOut) encapsulate(buf []byte, to *rack, id uint16) ([]byte, error) {
	out, err := o.header.Encapsulate(buf, id)
	if err == nil && o.head.high != 0 {
		o.head.put(out, to.tail)
	}
	return out, err
}

// groupTable has the groups in use.
type groupTable struct {
	address netip.Addr // outer source
	policy  policy.Policy
	carrier encap.Carrier
	apart   bool // flows keep to one component
	byKey   map[string]*group
	outs    map[outKey]*pathOut // of all paths that there ever were
	paths   int                 // of all groups
	ids     uint32              // given away
	resets  uint64              // how often there were too many
	key     []byte              // of the latest asked for
}

// outKey is what tells paths apart: those of all racks that a fat-tree's host
// has by one core are one, by either carrier.
type outKey struct {
	pathKey
	head sids
}

func newGroupTable(address netip.Addr, p policy.Policy, c encap.Carrier) groupTable {
	return groupTable{address: address, policy: p, carrier: c, apart: p.Groups, byKey: make(map[string]*group), outs: make(map[outKey]*pathOut)}
}

// of finds or makes the group of a pair with these paths.
func (t *groupTable) of(table *pathTable, p *pair, set topology.PathSet) *group {
	components := t.components(table, p, set)
	bounce := set.Addr(0).As4()
	key := append(t.key[:0], bounce[:]...)
	key = binary.AppendUvarint(key, uint64(len(p.rack.heads)))
	key = append(key, p.rack.heads...)
	for _, n := range set.Live {
		key = binary.BigEndian.AppendUint16(key, uint16(n))
	}
	for _, w := range set.Weights {
		key = binary.AppendUvarint(key, uint64(w))
	}
	for _, c := range components {
		key = binary.AppendUvarint(key, uint64(c.Weight))
		key = binary.AppendUvarint(key, uint64(len(c.Paths)))
		for _, n := range c.Paths {
			key = binary.BigEndian.AppendUint16(key, uint16(n))
		}
	}
	t.key = key
	if g := t.byKey[string(key)]; g != nil {
		return g
	}
	if t.paths+len(set.Live) > maxGrouped {
		t.reset(table)
	}
	return t.add(string(key), t.make(set, components, p.rack))
}

func (t *groupTable) add(key string, g *group) *group {
	t.ids = max(t.ids+1, 1)
	g.key, g.id = key, t.ids
	t.byKey[key] = g
	t.paths += len(g.live)
	return g
}

// components are those of the pair's paths, nil where the policy takes them for
// one.
func (t *groupTable) components(table *pathTable, p *pair, set topology.PathSet) []topology.Group {
	if !t.apart || len(set.Live) < 2 {
		return nil
	}
	if table.quiver == nil {
		table.quiver = table.topo.Quiver()
	}
	if c := table.quiver.Groups(table.self, p.host); len(c) > 1 {
		return c
	}
	return nil
}

func (t *groupTable) make(set topology.PathSet, components []topology.Group, to *rack) *group {
	g := &group{live: set.Weighted(), paths: set.Live}
	if set.Weights == nil {
		g.numbers = set.Count()
	}
	if n := len(set.Live); n > 0 {
		g.out = make([]*pathOut, set.Live[n-1]+1)
	}
	g.tags = make([]uint8, len(g.out))
	for _, n := range set.Live {
		g.tags[n] = tagOf(set, n)
		g.out[n] = t.out(set, n, to)
	}
	if components == nil {
		g.components = []component{{order: t.policy.Rule.Order(set.Bases, g.live)}}
		return g
	}
	upTo := uint64(0)
	for _, c := range components {
		upTo += uint64(c.Weight)
		g.components = append(g.components, component{t.policy.Rule.Order(set.Bases, c.Weighted()), upTo})
	}
	return g
}

// ofTunnel finds or makes the one group of a tunnel with so many paths.
func (t *groupTable) ofTunnel(paths int) *group {
	if g := t.byKey[""]; g != nil {
		return g
	}
	g := &group{live: make([]int, paths), out: make([]*pathOut, paths), numbers: paths}
	for i := range g.live {
		g.live[i] = i
		g.out[i] = &pathOut{index: i}
		t.outs[outKey{pathKey: pathKey{path: i}}] = g.out[i]
	}
	g.components = []component{{order: t.policy.Rule.Order([]int{paths}, g.live)}}
	return t.add("", g)
}

// out finds or makes what all groups share of a path.
func (t *groupTable) out(set topology.PathSet, n int, to *rack) *pathOut {
	k := outKey{pathKey: pathKey{bounce: set.Addr(n)}}
	if t.carrier == encap.CarrierSRv6 {
		k.head = sidsFrom(to.head(n, set.Count()))
	}
	o := t.outs[k]
	if o == nil {
		o = &pathOut{bounce: k.bounce, header: paths.Outer(t.carrier, t.address, set, n), head: k.head, index: n}
		t.outs[k] = o
	}
	return o
}

// leave takes a pair out of its group, which goes with its last pair.
func (t *groupTable) leave(p *pair) {
	g := p.group
	if g == nil {
		return
	}
	p.group = nil
	if g.pairs--; g.pairs == 0 && t.byKey[g.key] == g {
		delete(t.byKey, g.key)
		t.paths -= len(g.live)
	}
}

// reset has all pairs look for their groups again.
func (t *groupTable) reset(table *pathTable) {
	for _, p := range table.pairs {
		t.leave(p)
		p.valid = unknown
	}
	t.resets++
}
