package hedera

import (
	"fmt"
	"net/netip"

	"weft/topology"
)

// Fabric is a Space with names: what a Loop needs besides.
type Fabric interface {
	Space
	// Host finds the host that has an address, of either family.
	Host(a netip.Addr) (topology.NodeID, bool)
	// HostLink returns the rate of a host's own links, in Mbit/s.
	HostLink(host topology.NodeID) float64
	// Known reports whether an address is that of a node that reports or is told: a host, an
	// edge switch, or a switch that has a choice of ports up.
	Known(node netip.Addr) bool
	// Relays returns the switches behind a flow's edge switch that have a choice of ports for
	// it, too, where an edge switch has reported it. Those are told of the path besides.
	Relays(Assignment) []netip.Addr
	// Owns reports whether flows of a host begin at a node: it is that host, or its edge
	// switch.
	Owns(node netip.Addr, host topology.NodeID) bool
	// Live reports whether all links of a path between switches are up.
	Live(src, dst topology.NodeID, path int) bool
	// Via returns the address of the switch at which a path bounces, for packets of the
	// family that six says.
	Via(src, dst topology.NodeID, path int, six bool) (netip.Addr, bool)
	// Fingerprint tells fabrics apart, whichever links are down.
	Fingerprint() uint64
	// Fork returns the same fabric, for use by another goroutine.
	Fork() Fabric
}

// Clos is the Fabric of a computed topology.
type Clos struct {
	t        *topology.Topology
	capacity []float64
	layout   Layout
}

// NewClos returns the fabric of a topology. Links need rates: where none are known all are
// alike.
func NewClos(t *topology.Topology) (*Clos, error) {
	if !t.Computed() {
		return nil, fmt.Errorf("hedera: %s is not computed: use NewData", t)
	}
	c := &Clos{t: t, capacity: make([]float64, 2*t.NumLinks())}
	for l := range t.Links() {
		rate := t.Rate(l.ID)
		if rate == 0 {
			rate = unknownRate
		}
		if !t.Live(l.ID) {
			rate = 0
		}
		c.capacity[2*l.ID], c.capacity[2*l.ID+1] = rate, rate
	}
	c.lay()
	return c, nil
}

// unknownRate is that of a link whose rate is not known, in Mbit/s.
const unknownRate = 1000

// lay finds racks, pods and choices. Racks of a pod have paths of one digit to each other.
func (c *Clos) lay() {
	t := c.t
	c.layout.Choices, c.layout.Stride = 1, 1
	pods := make(map[topology.NodeID]int) // by the first switch above their edge switches
	racks := make(map[topology.NodeID]int)
	for h := topology.NodeID(0); int(h) < t.NumHosts(); h++ {
		edge := t.EdgeOf(h)
		up := edge
		for _, p := range t.Ports(edge) {
			if p.Up {
				up = p.Peer
				break
			}
		}
		pod, ok := pods[up]
		if !ok {
			pod = len(c.layout.Pods)
			pods[up] = pod
			c.layout.Pods = append(c.layout.Pods, nil)
		}
		rack, ok := racks[edge]
		if !ok {
			rack = len(c.layout.Pods[pod])
			racks[edge] = rack
			c.layout.Pods[pod] = append(c.layout.Pods[pod], nil)
		}
		c.layout.Pods[pod][rack] = append(c.layout.Pods[pod][rack], h)
	}
	// The pair that has the most paths: of two pods, or else of two racks.
	for _, other := range []topology.NodeID{c.far(0), topology.NodeID(t.NumHosts() - 1)} {
		switch b := t.Whole().Paths(0, other).Bases; len(b) {
		case 1:
			c.layout.Choices, c.layout.Stride = max(c.layout.Choices, b[0]), 1
		case 2:
			c.layout.Choices, c.layout.Stride = b[0]*b[1], b[1]
			return
		}
	}
}

// far returns a host of another pod, or of another rack, or host 0.
func (c *Clos) far(h topology.NodeID) topology.NodeID {
	for _, pod := range c.layout.Pods[1:] {
		return pod[0][0]
	}
	for _, rack := range c.layout.Pods[0][1:] {
		return rack[0]
	}
	return h
}

// Hosts is Network's.
func (c *Clos) Hosts() int { return c.t.NumHosts() }

// Capacity is Network's.
func (c *Clos) Capacity() []float64 { return c.capacity }

// HostRate is Network's: that of the first host's link, also while it is down.
func (c *Clos) HostRate() float64 { return c.HostLink(0) }

// HostLink is Fabric's.
func (c *Clos) HostLink(h topology.NodeID) float64 {
	if r := c.t.Rate(topology.LinkID(h)); r > 0 {
		return r
	}
	return unknownRate
}

// Paths is Network's.
func (c *Clos) Paths(src, dst topology.NodeID) int {
	n := 1
	for _, b := range c.t.Paths(src, dst).Bases {
		n *= b
	}
	return n
}

// AppendRoute is Network's.
func (c *Clos) AppendRoute(list []Use, src, dst topology.NodeID, path int) []Use {
	s := c.t.Paths(src, dst)
	if s.Direct() {
		return list
	}
	up, down := s.Halves(path)
	for _, l := range up {
		list = append(list, Use{2 * int32(l), Whole})
	}
	for i := len(down) - 1; i >= 0; i-- {
		list = append(list, Use{2*int32(down[i]) + 1, Whole})
	}
	return list
}

// Layout is Space's.
func (c *Clos) Layout() Layout { return c.layout }

// PathBy is Space's: between pods a choice is a path, within a pod the aggregation switch
// of that path.
func (c *Clos) PathBy(src, dst topology.NodeID, choice int) int {
	switch len(c.t.Paths(src, dst).Bases) {
	case 0:
		return 0
	case 1:
		return choice / c.layout.Stride
	}
	return choice
}

// ChoiceOf is Space's.
func (c *Clos) ChoiceOf(src, dst topology.NodeID, path int) int {
	if len(c.t.Paths(src, dst).Bases) == 1 {
		return path * c.layout.Stride
	}
	return path
}

// Host is Fabric's.
func (c *Clos) Host(a netip.Addr) (topology.NodeID, bool) {
	id, ok := c.t.ByAddr(topology.Addr4(a.Unmap()))
	if !ok || int(id) >= c.t.NumHosts() {
		return 0, false
	}
	return id, true
}

// Known is Fabric's.
func (c *Clos) Known(node netip.Addr) bool {
	id, ok := c.t.ByAddr(node)
	return ok && (c.t.Node(id).Layer <= topology.LayerEdge || c.t.ChoosesUp(id))
}

// Relays is Fabric's. What a host has reported it sends in an outer header, and needs none.
func (c *Clos) Relays(a Assignment) (list []netip.Addr) {
	src, ok := c.Host(a.Tuple.Src.IP())
	dst, ok2 := c.Host(a.Tuple.Dst.IP())
	node, ok3 := c.t.ByAddr(a.Node)
	if !ok || !ok2 || !ok3 || c.t.Node(node).Layer != topology.LayerEdge {
		return nil
	}
	s := c.t.Paths(src, dst)
	if s.Direct() || a.Path < 0 || a.Path >= c.Paths(src, dst) {
		return nil
	}
	up, _ := s.Halves(a.Path)
	hops := s.Path(a.Path).Hops // host, edge switch, and so on up
	for i := 2; i <= len(up); i++ {
		if c.t.ChoosesUp(hops[i]) {
			list = append(list, c.t.Node(hops[i]).Addr)
		}
	}
	return list
}

// Owns is Fabric's.
func (c *Clos) Owns(node netip.Addr, host topology.NodeID) bool {
	id, ok := c.t.ByAddr(node)
	return ok && (id == host || id == c.t.EdgeOf(host))
}

// Live is Fabric's.
func (c *Clos) Live(src, dst topology.NodeID, path int) bool {
	s := c.t.Paths(src, dst)
	if s.Direct() || path < 0 || path >= c.Paths(src, dst) {
		return false
	}
	up, down := s.Halves(path)
	for _, l := range append(up, down...) {
		if !c.t.Live(l) {
			return false
		}
	}
	return true
}

// Via is Fabric's. Flows of IPv6 have the same paths, whose switches are named by their addresses
// of IPv4: edge switches place them, and need no outer header.
func (c *Clos) Via(src, dst topology.NodeID, path int, _ bool) (netip.Addr, bool) {
	s := c.t.Paths(src, dst)
	if s.Direct() || path < 0 || path >= c.Paths(src, dst) {
		return netip.Addr{}, false
	}
	return s.Addr(path), true
}

// Fingerprint is Fabric's.
func (c *Clos) Fingerprint() uint64 { return c.t.Fingerprint() }

// Fork is Fabric's. A Clos does not change.
func (c *Clos) Fork() Fabric { return c }
