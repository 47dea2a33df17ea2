package simnet

import (
	"fmt"
	"net/netip"

	"weft/topology"
)

// SID is a micro-SID of an operator (graph.SIDs): a switch takes the outer header off what is
// addressed to it.
type SID struct {
	Switch topology.NodeID
	Inner6 bool // IPv6 is inside, not IPv4
}

// sid is a SID as packets need it.
type sid struct {
	at    uint32 // the switch's address
	inner byte   // the protocol inside
}

func sidsOf(t *topology.Topology, of map[netip.Addr]SID) (map[[16]byte]sid, error) {
	m := make(map[[16]byte]sid, len(of))
	for a, s := range of {
		if !a.Is6() || !t.Valid(s.Switch) || t.Node(s.Switch).Layer < topology.LayerAgg {
			return nil, fmt.Errorf("simnet: SID %v of node %d: must be an IPv6 address of a switch at which packets bounce", a, s.Switch)
		}
		inner := byte(protocolIPIP)
		if s.Inner6 {
			inner = protocolIPv6
		}
		m[a.As16()] = sid{number(t.Node(s.Switch).Addr), inner}
	}
	return m, nil
}

// sid returns the SID that a packet with a whole header is for; false if it is for none.
func (n *Network) sid(b []byte) (s sid, ok bool) {
	if len(n.sids) > 0 && isIPv6(b) {
		s, ok = n.sids[[16]byte(b[24:])]
	}
	return s, ok
}

// destination is where a packet is routed to: for a SID the switch that has it.
func (n *Network) destination(b []byte) uint32 {
	if s, ok := n.sid(b); ok {
		return s.at
	}
	return destination(b)
}
