package simnet

import "weft/topology"

// Cause is why a packet was dropped.
type Cause uint8

// The causes.
const (
	QueueFull  Cause = iota // the port had no room
	NoRoute                 // no route, or one that refuses the destination
	TTLExpired              // too many hops
	Malformed               // a broken header, outer or inner, or nested too deep
	Spoofed                 // inner and outer source differ
	NotForUs                // addressed to a switch that does not bounce it, or come to the wrong host
	Lost                    // by an impaired link
	LinkDown                // sent to or under way on a link that is down
	NodeDown                // at, from or under way to a node that has failed
	NoLabel                 // a label that is no port of the switch to another, or one whose link is dead
	LabelsEnd               // labels that end before the edge switch of the destination
	NumCauses
)

func (c Cause) String() string {
	return [...]string{"queue full", "no route", "TTL expired", "malformed", "spoofed", "not for us", "lost", "link down", "node down",
		"no such label", "labels end early"}[c]
}

// Stats counts packets. Injected and Duplicated together are the sum of
// Delivered, all of Dropped, and InFlight.
type Stats struct {
	Injected, Delivered uint64
	Dropped             [NumCauses]uint64
	InFlight            int    // in queues and on wires
	Duplicated          uint64 // copies that impaired links have made
	Corrupted           uint64 // times that an impaired link changed a bit
}

// Stats returns the counters so far.
func (n *Network) Stats() Stats {
	s := n.stats
	s.InFlight = n.events.Len()
	return s
}

// Link returns the counters of a link's two ports: up is the lower end's, which
// sends towards the core.
func (n *Network) Link(id topology.LinkID) (up, down PortStats) {
	return n.ports[2*id].stats, n.ports[2*id+1].stats
}
