package lab

import (
	"slices"

	"weft/topology"
)

// Expected is what a lab has given a port when it was built.
type Expected struct {
	Port     string
	Peer     string
	MTU      int     // bytes
	RateMbit float64 // 0: no queue limits it
}

// Expect lists the ports of a node.
func (l *Lab) Expect(id topology.NodeID) (all []Expected) {
	c := &l.Config
	for _, p := range c.ports(id) {
		lower := c.plant().Link(p.Link).A
		e := Expected{Port: c.portName(id, p.Index), Peer: c.plant().Node(p.Peer).Name, MTU: c.linkMTU(c.plant().Node(lower))}
		if !c.Unlimited {
			e.RateMbit = c.linkRate(p.Link)
		}
		all = append(all, e)
	}
	return all
}

// Nodes lists the nodes that the lab has, the hosts first.
func (l *Lab) Nodes() []topology.Node { return slices.Collect(l.Config.nodes()) }
