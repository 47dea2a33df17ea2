package simnet

import (
	"fmt"

	"weft/topology"
)

// SetTopology gives all switches and hosts the routes of t, which is the same
// fabric with other links down. It does not stop what is on the way, nor does
// it cut cables: Impair does.
func (n *Network) SetTopology(t *topology.Topology) error {
	for node := range t.Nodes() {
		if err := n.SetRoutes(node.ID, t); err != nil {
			return err
		}
	}
	return nil
}

// SetRoutes is SetTopology for a single node, which so may learn of a failure
// sooner or later than others.
func (n *Network) SetRoutes(id topology.NodeID, t *topology.Topology) error {
	if t.String() != n.fabric {
		return fmt.Errorf("simnet: SetTopology: the network is a %s, not a %s", n.fabric, t)
	}
	if int(id) < 0 || int(id) >= len(n.nodes) {
		return fmt.Errorf("simnet: SetRoutes: node %d is not in %s", id, t)
	}
	old := &n.nodes[id]
	node := newNode(t, t.Node(id), old.seed)
	node.down, node.deaf = old.down, old.deaf
	*old = node
	return nil
}

// Fail makes a node fail, without a sign to its neighbours: what it has queued,
// what comes to it and what it would send is lost, until Heal. It must be one
// of the topology.
func (n *Network) Fail(id topology.NodeID) { n.nodes[id].down = true }

// SetBounce has a switch take outer headers off, as all do at first, or drop what is
// to be decapsulated there; it goes on to forward all else.
func (n *Network) SetBounce(id topology.NodeID, bounces bool) { n.nodes[id].deaf = !bounces }

// Heal undoes Fail. What is on the way to the node by then arrives.
func (n *Network) Heal(id topology.NodeID) { n.nodes[id].down = false }
