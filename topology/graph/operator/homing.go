package operator

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"weft/topology"
	"weft/topology/graph"
)

// Homing is how hosts are wired to edge switches. The zero value leaves each host at the one
// that it has.
type Homing struct {
	// Uplinks, if above 1, is of how many edge switches a rack has. These are next to each
	// other in the fabric, and each host of theirs is wired to all of them.
	Uplinks int
	// Planes, if above 1, is how many times the switches are built. The planes have no link to
	// each other. Each host is wired to its edge switches in all of them.
	Planes int
}

// maxHomes bounds Uplinks and Planes, and the links of a host.
const maxHomes = 8

func (h Homing) uplinks() int { return max(h.Uplinks, 1) }
func (h Homing) planes() int  { return max(h.Planes, 1) }

// edges is how many edge switches a host is wired to.
func (h Homing) edges() int { return h.uplinks() * h.planes() }

// SpecHomed is Spec with hosts that have several uplinks, eth1 and so on. Where there are
// several planes, the switches of the first are called p1-leaf1 and p1-spine1. It fails if the
// edge switches cannot be divided into racks that are wired to the same switches.
func SpecHomed(t *topology.Topology, seed uint64, h Homing) (graph.Spec, error) {
	p := planner{t: t, homing: h, r: rand.New(rand.NewPCG(seed, 0x6f70)), used: make(map[netip.Addr]bool), rackOf: make(map[topology.NodeID]int)}
	p.first = p.r.IntN(2)
	if h.edges() > maxHomes || h.Uplinks < 0 || h.Planes < 0 {
		return p.spec, fmt.Errorf("hosts with %d uplinks into each of %d planes: a host may have up to %d links", h.Uplinks, h.Planes, maxHomes)
	}
	if err := p.findRacks(); err != nil {
		return p.spec, err
	}
	for id := topology.NodeID(t.NumNodes() - 1); id >= 0; id-- {
		p.lowest[t.Node(id).Layer] = id
	}
	for plane := range h.planes() {
		for n := range t.Nodes() {
			if n.Layer != topology.LayerHost {
				p.addSwitch(n, plane)
			}
		}
	}
	for i, r := range p.racks {
		for place := range r.hosts {
			p.addHost(place, i)
		}
	}
	p.addEmbedded()
	for plane := range h.planes() {
		p.addPlaneLinks(plane)
	}
	return p.spec, nil
}

// findRacks divides the edge switches into racks.
func (p *planner) findRacks() error {
	var above []topology.NodeID // of the rack that is being filled
	for edge := range p.t.Racks() {
		var up []topology.NodeID
		var hosts []topology.NodeID
		for _, port := range p.t.Ports(edge) {
			if port.Up {
				up = append(up, port.Peer)
			} else {
				hosts = append(hosts, port.Peer)
			}
		}
		last := len(p.racks) - 1
		if last < 0 || len(p.racks[last].edges) == p.homing.uplinks() {
			p.racks = append(p.racks, rack{})
			last, above = last+1, up
		}
		r := &p.racks[last]
		if !slices.Equal(up, above) {
			return fmt.Errorf("racks of %d edge switches: %s is not wired to the same switches as %s", p.homing.Uplinks, p.t.Node(edge).Name, p.t.Node(r.edges[0]).Name)
		}
		r.edges, r.hosts = append(r.edges, edge), append(r.hosts, hosts...)
		p.rackOf[edge] = last
	}
	if last := p.racks[len(p.racks)-1]; len(last.edges) < p.homing.uplinks() {
		return fmt.Errorf("racks of %d edge switches: %d are left over; the fabric has %d", p.homing.Uplinks, len(last.edges), len(p.rackOf))
	}
	return nil
}

// name is what a switch of a plane is called.
func (p *planner) name(id topology.NodeID, plane int) string {
	layer := p.t.Node(id).Layer
	name := fmt.Sprintf("%s%d", [...]string{"", "leaf", "spine", "core"}[layer], 1+id-p.lowest[layer])
	if p.homing.planes() > 1 {
		name = fmt.Sprintf("p%d-%s", plane+1, name)
	}
	return name
}
