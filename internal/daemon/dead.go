package daemon

import (
	"fmt"
	"slices"

	"weft/internal/blame"
	"weft/topology"
)

// withDead puts switches of which no link works before what else is blamed, in the place of
// these links. A switch has links to at least two others, or it may as well be its one link.
func withDead(t *topology.Topology, list []BlameStatus) []BlameStatus {
	down := make(map[topology.NodeID]int)
	for _, l := range t.Down() {
		link := t.Link(l)
		down[link.A]++
		down[link.B]++
	}
	var dead []BlameStatus
	for n := range t.Nodes() { // in the order of names
		if down[n.ID] < 2 || n.Layer == topology.LayerHost {
			continue
		}
		links := linksOf(t, n.ID)
		if down[n.ID] < len(links) {
			continue
		}
		list = slices.DeleteFunc(list, func(b BlameStatus) bool {
			return !slices.ContainsFunc(b.Places, func(p string) bool { return p != n.Name && !slices.Contains(links, p) })
		})
		dead = append(dead, BlameStatus{Places: []string{n.Name}, Kinds: []string{blame.Switch.String()}, Confidence: 1,
			Why: fmt.Sprintf("none of its %d links to other switches works", len(links))})
	}
	return append(dead, list...)
}

// linksOf names a switch's links to other switches.
func linksOf(t *topology.Topology, id topology.NodeID) (names []string) {
	for _, p := range t.Ports(id) {
		if t.Node(p.Peer).Layer != topology.LayerHost {
			names = append(names, t.LinkName(p.Link))
		}
	}
	return names
}
