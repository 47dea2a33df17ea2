package lookout

import (
	"log/slog"

	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/liveness"
	"weft/topology"
)

// SayLinks tells which links went down or came up between two states of a fabric. same is
// false, and nothing is told, if they are of two fabrics.
func SayLinks(log *eventlog.Log, was, now *topology.Topology) (same bool) {
	links, same := was.Diff(now)
	if !same {
		return false
	}
	var down, up []string
	for _, l := range links {
		if now.Live(l) {
			up = append(up, now.LinkName(l))
		} else {
			down = append(down, now.LinkName(l))
		}
	}
	if len(down) > 0 {
		log.Warn(event.LinksDown, "links down", "links", down[:min(len(down), maxLogged)], "count", len(down))
	}
	if len(up) > 0 {
		log.Info(event.LinksUp, "links up", "links", up[:min(len(up), maxLogged)], "count", len(up))
	}
	return true
}

// SayRacks tells how packets to racks go from now on. usual is the longest packet that the
// carrier takes anywhere, without the outer header, in bytes.
func SayRacks(log *eventlog.Log, change *liveness.Change, t *topology.Topology, carrier string, usual int) {
	level := slog.LevelInfo
	if change.Plain {
		level = slog.LevelWarn
	}
	var racks []string
	for _, edge := range change.Racks[:min(len(change.Racks), maxLogged)] {
		racks = append(racks, t.Node(edge).Name)
	}
	log.Say(level, event.Rack, change.Text(t, carrier, usual),
		slog.Group("", "racks", racks, "count", len(change.Racks), "plain", change.Plain, "carrier", carrier, "mtu", change.MTU, "why", change.Why))
}
