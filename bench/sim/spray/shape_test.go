package spray

import (
	"testing"

	"weft/topology"
)

func TestShape_isAsTheTopologyHasIt(t *testing.T) {
	for _, spec := range []string{leafSpine, fatTree, vl2, fatTree + ",hosts=3", "leaf-spine:leaves=3,spines=2,hosts=5"} {
		topo := parse(t, spec)
		s := shapeOf(topo)
		for n := range topo.Nodes() {
			switch n.Layer {
			case topology.LayerHost:
				if edge := topo.Ports(n.ID)[0].Peer; s.edgeOf(n.ID) != edge || s.rack(n.ID) != int(edge-s.edge) {
					t.Errorf("%s: edge switch of %s is %d, want %d", spec, n.Name, s.edgeOf(n.ID), edge)
				}
			case topology.LayerCore:
				if n.ID < s.core {
					t.Errorf("%s: %s is no core", spec, n.Name)
				}
			default:
				if n.ID >= s.core || s.isEdge(n.ID) != (n.Layer == topology.LayerEdge) {
					t.Errorf("%s: layer of %s is not %v", spec, n.Name, n.Layer)
				}
				i := topology.LinkID(0)
				for _, p := range topo.Ports(n.ID) {
					if p.Up {
						if p.Link != s.uplink(n.ID)+i {
							t.Errorf("%s: port %d up from %s is link %d, want %d", spec, i, n.Name, s.uplink(n.ID)+i, p.Link)
						}
						i++
					}
				}
			}
		}
	}
}
