package topoupdate

import "weft/topology"

// Own stands for the port of the switch's own entries, which came by no port.
const Own = -1

// direction is where a port leads.
type direction uint8

const (
	toHost direction = iota // from an edge switch to a server
	toDown                  // to a switch one layer below
	toUp                    // to a switch one layer above
	toSelf                  // no port: what a switch says of itself
)

// forwards is DRB's three rules (§4.3), and where the thesis's tags go (§3.1.8), for one
// switch:
//
//	servers only listen                       nothing comes from a server
//	a ToR's uplink failure is its servers'    an edge switch's own entry goes down only
//	what comes from above goes below          and, at an edge switch, to servers
//	what comes from below goes everywhere     a spine so reflects it
//
// So an entry travels every path that could lead over the dead link, backwards from the
// link. A host that still has such a path hears of the failure by that path, whatever
// else has failed.
//
// An edge switch's entry is only for its servers, so no other switch forwards one.
func forwards(self topology.Layer, from direction, originator topology.Layer, to direction) bool {
	if originator == topology.LayerEdge && (self != topology.LayerEdge || from != toSelf) {
		return false
	}
	switch from {
	case toSelf:
		return self != topology.LayerEdge || to == toHost
	case toUp:
		return to == toDown || to == toHost
	case toDown:
		return true
	}
	return false // servers only listen
}

// directionOf tells where a port leads.
func directionOf(t *topology.Topology, p topology.Port) direction {
	switch {
	case p.Up:
		return toUp
	case int(p.Peer) < t.NumHosts():
		return toHost
	}
	return toDown
}
