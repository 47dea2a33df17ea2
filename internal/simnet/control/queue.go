package control

import "weft/topology"

// event is a message that arrives at a port, or, with no packet, that a node is due.
type event struct {
	node   topology.NodeID
	port   int
	life   int // of the node: what is for an earlier one is void
	packet []byte
}
