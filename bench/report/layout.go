package report

import "weft/topology"

// maxDrawnHosts is up to where a fabric is drawn: k=8 has 128 hosts and 384
// links, and is about as much as a page's width can show.
const maxDrawnHosts = 256

// The measures of the picture, in the units of its viewBox.
const (
	fabricWidth = 960.0
	podPad      = 6.0
)

// layerY is the height at which each layer is drawn.
var layerY = map[topology.Layer]float64{
	topology.LayerCore: 24,
	topology.LayerAgg:  134,
	topology.LayerEdge: 234,
	topology.LayerHost: 312,
}

// layout says where the nodes are. It is the same for all policies.
type layout struct {
	x      []float64 // by NodeID
	slot   float64   // from host to host
	stroke float64   // what links are thinned by, so that many can be told apart
	boxes  []pod
}

// pod is what hangs together without the core switches.
type pod struct{ X, Y, Width, Height float64 }

// newLayout puts the hosts side by side with a gap between pods, the pod
// switches evenly above their pod's hosts, the cores evenly above all.
func newLayout(t *topology.Topology) layout {
	pods := findPods(t)
	slots := float64(t.NumHosts() + len(pods) - 1)
	l := layout{x: make([]float64, t.NumNodes()), slot: fabricWidth / slots}
	l.stroke = min(max(l.slot/30, 0.35), 1)
	left := 0.0
	for _, p := range pods {
		width := float64(len(p[topology.LayerHost])) * l.slot
		for _, layer := range p {
			for i, id := range layer {
				l.x[id] = left + (float64(i)+0.5)/float64(len(layer))*width
			}
		}
		l.boxes = append(l.boxes, pod{
			X: left - min(podPad, l.slot/3), Width: width + 2*min(podPad, l.slot/3),
			Y: layerY[topology.LayerAgg] - 22, Height: layerY[topology.LayerHost] - layerY[topology.LayerAgg] + 44,
		})
		left += width + l.slot
	}
	var cores []topology.NodeID
	for n := range t.Nodes() {
		if n.Layer == topology.LayerCore {
			cores = append(cores, n.ID)
		}
	}
	for i, id := range cores {
		l.x[id] = (float64(i) + 0.5) / float64(len(cores)) * fabricWidth
	}
	return l
}

// findPods returns the connected parts of the graph without the cores, in the
// order of their first host, each as nodes by layer.
func findPods(t *topology.Topology) (pods []map[topology.Layer][]topology.NodeID) {
	in := make([]int, t.NumNodes()) // pod number and 1
	for h := range t.Hosts() {
		if in[h.ID] != 0 {
			continue
		}
		members := []topology.NodeID{h.ID}
		in[h.ID] = len(pods) + 1
		for i := 0; i < len(members); i++ {
			for _, p := range t.Ports(members[i]) {
				if in[p.Peer] == 0 && t.Node(p.Peer).Layer != topology.LayerCore {
					in[p.Peer] = len(pods) + 1
					members = append(members, p.Peer)
				}
			}
		}
		pods = append(pods, nil)
	}
	for i := range pods {
		pods[i] = make(map[topology.Layer][]topology.NodeID)
	}
	for n := range t.Nodes() {
		if p := in[n.ID]; p != 0 {
			pods[p-1][n.Layer] = append(pods[p-1][n.Layer], n.ID)
		}
	}
	return pods
}
