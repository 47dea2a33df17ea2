package switchd

import (
	"fmt"

	"weft/internal/event"
)

// neighbourNews returns what tells which neighbours went or came back since the last call. At
// the first, it tells who is missing. It is called with mu held; what it returns is not.
func (a *Agent) neighbourNews() (tell func()) {
	now := a.machine.Neighbours()
	was := a.neighbours
	a.neighbours, a.reports = now, a.machine.Stats().Reports
	return func() {
		for i, n := range now { // of the same ports each time
			up := was == nil || was[i].Up
			port, name := a.names[n.Port], a.config.Topology.Node(n.Node).Name
			why := n.Why
			switch {
			case !n.Carrier:
				why = "no carrier"
			case n.Strange:
				why = a.strange(n)
			}
			switch {
			case up && !n.Up:
				a.config.Log.Warn(event.NeighbourDown, fmt.Sprintf("port %s to %s is down: %s", port, name, why), "port", port, "neighbour", name, "why", why)
			case !up && n.Up:
				a.config.Log.Info(event.NeighbourUp, fmt.Sprintf("port %s to %s is up: %s", port, name, why), "port", port, "neighbour", name, "why", why)
			}
		}
	}
}
