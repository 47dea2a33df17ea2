package dataplane

import (
	"encoding/binary"
	"net/netip"

	"weft/drb"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/paths"
	"weft/liveness"
	"weft/policy"
	"weft/topology"
)

// maxPairs bounds the table of destinations. The largest topology has as many hosts,
// and twice as many addresses. Above the bound some destination is forgotten and
// starts anew.
const maxPairs = 1 << 16

// pathTable holds the paths to each destination. It belongs to egress and is guarded by
// its lock.
//
// The fabric may be known as each of the host's addresses sees it (Config.Topology6). Then
// what has an IPv6 address is in a table of its own.
//
// When links fail or come back, only the list of these links is computed. At its next
// packet a pair finds out whether one of them lies on its paths. Only then are its paths
// looked up again. Other pairs keep their place in their order.
type pathTable struct {
	topo    *topology.Topology
	self    topology.NodeID
	address netip.Addr
	tunnel  *tunnel // in place of topo; nil if there is none
	policy  policy.Policy
	spray   bool // Config.SprayDatagrams
	inner6  bool // IPv6 is encapsulated
	longest int  // inner packet in bytes, where the egress's own is too long; 0: any
	seed    uint64

	pairs   map[flowcell.Address]*pair
	recent  *pair // the latest asked for, and valid; packets come in bursts
	none    *pair // recent while there is none
	evicted uint64
	numbers *uint32 // given to pairs; both families share it

	racks   rackTable
	groups  groupTable
	quiver  *topology.Quiver // of topo, nil until needed
	changes changeLog

	six        *pathTable         // of IPv6; nil: it is in this one
	carriage   *liveness.Carriage // nil: the carrier is used everywhere
	diversions []diversion        // longest prefix first; of the own policy's table only
}

// pair is the state towards one destination. DRB keeps one selector for data and one
// for pure ACKs (DRB §5).
type pair struct {
	dst     flowcell.Address
	host    netip.Addr // that has the address, see topology.HostAt; of no meaning where direct or in a tunnel
	number  uint32     // no other pair has it; not 0
	six     bool       // the address is IPv6; false in a tunnel, whose own header has numbers
	direct  bool       // no bouncing switch needed, or not of this fabric
	rack    *rack      // nil where direct or in a tunnel
	peer    *peer      // of a tunnel; nil if there is none, or no tunnel
	instead *lane      // of the policy that the destination was given; nil: none
	valid   uint64     // the latest change that the pair has taken note of
	group   *group     // nil: not known
	bound   uint64     // how many groups the pair has had
	selectors
	further []selectors     // of the group's further components
	count   flowcell.Number // of sprayed TCP segments
	tally   []uint32        // segments by path, see evidence; nil while nobody counts
	acks    uint16          // pure acknowledgements, where the number is to choose their path
	four    uint32          // the address, or of IPv6 see fourOf, as a number; 0 where direct or in a tunnel

	reported bool // the latest packet that carried a mark reported congestion
}

func newPathTable(t *topology.Topology, address netip.Addr, p policy.Policy, c encap.Carrier, spray bool, seed uint64) *pathTable {
	table := &pathTable{
		topo: t, address: address, policy: p, spray: spray, seed: seed,
		pairs:   make(map[flowcell.Address]*pair),
		none:    &pair{direct: true}, // as that of no address is
		racks:   newRackTable(c),
		groups:  newGroupTable(address, p, c),
		numbers: new(uint32),
	}
	table.recent = table.none
	if t != nil {
		table.self, _ = t.ByAddr(address)
	}
	return table
}

// to returns the pair of a destination. The pair is valid until the topology changes.
func (t *pathTable) to(dst flowcell.Address) *pair {
	if t.recent.dst != dst {
		t.recent = t.lookup(dst)
	}
	return t.recent
}

func (t *pathTable) lookup(dst flowcell.Address) *pair {
	if t.six != nil && dst.Is6() {
		return t.six.lookup(dst)
	}
	p := t.pairs[dst]
	if p == nil {
		if len(t.pairs) >= maxPairs {
			t.evict()
		}
		p = t.newPair(dst)
		*t.numbers = max(*t.numbers+1, 1)
		p.number = *t.numbers
		p.instead = t.diverted(dst)
		p.valid = t.changes.latest
		t.pairs[dst] = p
	} else if p.valid != t.changes.latest {
		t.revalidate(p)
	}
	return p
}

// byNumber returns the pairs that need paths, by their numbers.
func (t *pathTable) byNumber() map[uint32]*pair {
	m := make(map[uint32]*pair, len(t.pairs))
	for _, table := range t.tables() {
		for _, p := range table.pairs {
			if p.rack != nil {
				m[p.number] = p
			}
		}
	}
	return m
}

// diverted returns the lane that a destination was given; nil if none.
func (t *pathTable) diverted(dst flowcell.Address) *lane {
	for i := range t.diversions {
		if d := &t.diversions[i]; d.prefix.Contains(dst.IP()) {
			return d.lane
		}
	}
	return nil
}

// evict forgets some destination.
func (t *pathTable) evict() {
	for k, p := range t.pairs {
		t.groups.leave(p)
		delete(t.pairs, k)
		t.evicted++
		return
	}
}

func (t *pathTable) newPair(dst flowcell.Address) *pair {
	if t.tunnel != nil {
		return t.tunnel.pair(t, dst)
	}
	addr := dst.IP()
	p := &pair{dst: dst, six: addr.Is6()}
	host, edge, ok := hostAt(t.topo, addr)
	if !ok {
		p.direct = true
		return p
	}
	p.host = host
	p.four = fourOf(addr, host)
	if set := t.topo.PathsTo(t.self, host).OrAll(); set.Direct() {
		p.direct = true
	} else {
		p.rack = t.racks.of(t.topo, edge, p.six, set)
		t.carryTo(p.rack)
		t.bind(p, t.groups.of(t, p, set))
	}
	return p
}

// hostAt is topology.HostAt, where every IPv4 address has an IPv6 address that belongs to it
// (topology.Addr6).
func hostAt(t *topology.Topology, addr netip.Addr) (host netip.Addr, edge topology.NodeID, ok bool) {
	host, edge, ok = t.HostAt(addr)
	if four, is := within(addr); !ok && is {
		return t.HostAt(four)
	}
	return host, edge, ok
}

// within returns the IPv4 address that is the end of an IPv6 address, if topology.Addr6 has
// made that.
func within(addr netip.Addr) (netip.Addr, bool) {
	four := topology.Addr4(addr)
	return four, addr.Is6() && four.IsValid()
}

// fourOf returns the IPv4 address of what has an address at a host, as a number: itself, the
// one that belongs to it, or the host's own. It is 0 if none is known.
func fourOf(addr, host netip.Addr) uint32 {
	if four, is := within(addr); is {
		addr = four
	} else if !addr.Is4() {
		addr = host
	}
	if !addr.Is4() {
		return 0
	}
	four := addr.As4()
	return binary.BigEndian.Uint32(four[:])
}

// revalidate makes a pair take note of the links that have changed.
func (t *pathTable) revalidate(p *pair) {
	if !p.direct && t.tunnel == nil && (p.group == nil || t.affects(p.valid, p)) {
		if g := t.groups.of(t, p, t.topo.PathsTo(t.self, p.host).OrAll()); g != p.group {
			t.bind(p, g)
		}
	}
	p.valid = t.changes.latest
}

// affects reports whether a pair's paths may have changed since it last took note.
// Components depend on more than a pair's own links: links elsewhere change what else
// its paths carry (DRILL §3.4.1).
func (t *pathTable) affects(since uint64, p *pair) bool {
	links, all := t.changes.since(since)
	if !all || t.groups.apart {
		return true
	}
	for _, c := range links {
		if c.link == noLink && c.host == p.host || c.link != noLink && t.topo.OnPaths(c.link, t.self, p.rack.id) {
			return true
		}
	}
	return false
}

// bind gives a pair its paths, and selectors over them.
func (t *pathTable) bind(p *pair, g *group) {
	t.groups.leave(p)
	p.group = g
	g.pairs++
	a := p.dst.IP().As16()
	seed := t.seed ^ (uint64(binary.BigEndian.Uint32(a[12:]))^binary.BigEndian.Uint64(a[:]))<<1
	p.further = nil
	for i := range g.Components {
		order := g.Components[i].Order
		data, ack := paths.Seeds(seed, p.bound, i)
		s := selectors{drb.NewSelector(t.policy.Rule, order, data), drb.NewSelector(t.policy.Rule, order, ack)}
		if i == 0 {
			p.selectors = s
		} else {
			p.further = append(p.further, s)
		}
	}
	p.bound++
}

// change makes later packets use the live paths of topo. It is false if topo is
// another fabric; then nothing has changed.
func (t *pathTable) change(topo *topology.Topology) bool {
	links, same := t.topo.Diff(topo)
	if !same {
		return false
	}
	hosts := t.topo.Redirected(topo, t.self)
	t.topo, t.quiver = topo, nil
	if len(links)+len(hosts) > 0 {
		t.changes.add(links, hosts)
		t.recent = t.none
	}
	return true
}
