package stack

import (
	"encoding/binary"
	"net/netip"

	"weft/drb"
	"weft/encap"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// maxPairs bounds the table of destinations: as many as the largest topology
// has hosts, which is half of their addresses. Above it, some destination is forgotten and starts anew.
const maxPairs = 1 << 16

// pathTable knows how to reach each destination over one topology. It belongs
// to egress and is guarded by its lock.
type pathTable struct {
	topo    *topology.Topology
	self    topology.NodeID
	address netip.Addr
	tunnel  *tunnel // in place of topo; nil if there is none
	policy  policy.Policy
	spray   bool // Config.SprayDatagrams
	seed    uint64
	pairs   map[flowcell.Address]*pair
	recent  *pair // the latest asked for; packets come in bursts
	groups  map[string]*group
	evicted uint64
}

// group is what all pairs with the same live paths share.
type group struct {
	order []int      // as the policy's rule visits them
	live  []int      // ascending, for flows that keep to one path
	out   []*pathOut // by path number, nil where dead
}

// pathOut is one path's outer header and its counters.
type pathOut struct {
	group   *group
	bounce  netip.Addr
	header  encap.IPIP
	index   int // path number
	packets uint64
	bytes   uint64
}

// pair is the state towards one destination: DRB keeps one selector for data
// and one for pure ACKs (DRB §5).
type pair struct {
	dst       flowcell.Address
	direct    bool  // no bouncing switch needed, or not of this fabric
	peer      *peer // of a tunnel; nil if there is none, or no tunnel
	group     *group
	data, ack drb.Selector
	flows     drb.Selector    // for flows that keep to one path
	count     flowcell.Number // of sprayed TCP segments
	acks      uint16          // pure acknowledgements, where the number is to choose their path
}

func newPathTable(t *topology.Topology, address netip.Addr, p policy.Policy, spray bool, seed uint64) *pathTable {
	table := &pathTable{
		topo: t, address: address, policy: p, spray: spray, seed: seed,
		pairs:  make(map[flowcell.Address]*pair),
		recent: &pair{direct: true}, // as that of no address is
		groups: make(map[string]*group),
	}
	if t != nil {
		table.self, _ = t.ByAddr(address)
	}
	return table
}

// next is a selector's next path, nil if none is live.
func (p *pair) next(s *drb.Selector, hash uint64) *pathOut {
	n, ok := s.Next(hash)
	if !ok {
		return nil
	}
	return p.group.out[n]
}

// counted is the number of the next segment where units have none: with it the
// receiver can tell what is late from what was sent again.
func (p *pair) counted() flowcell.Number {
	p.count = p.count.Count()
	return p.count
}

// to returns the pair of a destination.
func (t *pathTable) to(dst flowcell.Address) *pair {
	if t.recent.dst != dst {
		t.recent = t.lookup(dst)
	}
	return t.recent
}

func (t *pathTable) lookup(dst flowcell.Address) *pair {
	if p := t.pairs[dst]; p != nil {
		return p
	}
	if len(t.pairs) >= maxPairs {
		for k := range t.pairs {
			delete(t.pairs, k)
			t.evicted++
			break
		}
	}
	p := t.newPair(dst)
	t.pairs[dst] = p
	return p
}

func (t *pathTable) newPair(dst flowcell.Address) *pair {
	if t.tunnel != nil {
		return t.tunnel.pair(t, dst)
	}
	id, ok := t.topo.ByAddr(dst.IP())
	if !ok || int(id) >= t.topo.NumHosts() {
		return &pair{dst: dst, direct: true}
	}
	set := t.topo.Paths(t.self, id)
	if set.Direct() {
		return &pair{dst: dst, direct: true}
	}
	return t.spread(dst, t.group(set))
}

// spread returns a new pair with these paths. Selectors of different pairs and
// kinds must not start in step.
func (t *pathTable) spread(dst flowcell.Address, g *group) *pair {
	a := dst.IP().As16()
	seed := t.seed ^ (uint64(binary.BigEndian.Uint32(a[12:]))^binary.BigEndian.Uint64(a[:]))<<1
	return &pair{
		dst:   dst,
		group: g,
		data:  drb.NewSelector(t.policy.Rule, g.order, seed),
		ack:   drb.NewSelector(t.policy.Rule, g.order, seed|1<<63),
		flows: drb.NewSelector(policy.PerFlow.Rule, g.live, seed),
	}
}

// group finds or makes what is shared by all pairs with these live paths.
func (t *pathTable) group(set topology.PathSet) *group {
	key := binary.BigEndian.AppendUint32(nil, uint32(set.Bounce(0)))
	for _, n := range set.Live {
		key = binary.BigEndian.AppendUint16(key, uint16(n))
	}
	if g := t.groups[string(key)]; g != nil {
		return g
	}
	g := &group{order: t.policy.Rule.Order(set.Bases, set.Live), live: set.Live}
	if n := len(set.Live); n > 0 {
		g.out = make([]*pathOut, set.Live[n-1]+1)
	}
	for _, n := range set.Live {
		bounce := set.Addr(n)
		// Both addresses are IPv4, which New has checked.
		header, _ := encap.NewIPIP(t.address, bounce)
		g.out[n] = &pathOut{group: g, bounce: bounce, header: header, index: n}
	}
	t.groups[string(key)] = g
	return g
}
