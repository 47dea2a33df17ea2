package topoupdate

import (
	"fmt"

	"weft/topology"
)

// maxPorts is how many ports of one switch fit into a message with one entry.
const maxPorts = (MaxMessage - headerSize - macSize - entrySize) * 8

// fabric answers cheaply what messages ask of a topology: which nodes are
// switches, of which layer, with how many ports.
type fabric struct {
	*topology.Topology
	fingerprint uint64
	start       [topology.LayerCore + 2]topology.NodeID // the first node of each layer; then of none
	ports       [topology.LayerCore + 1]int             // of a switch of each layer
	hostPorts   int                                     // of an edge switch: its first ones
	words       int                                     // of 64 bits that hold any switch's ports
}

func newFabric(t *topology.Topology) (*fabric, error) {
	f := &fabric{Topology: t, fingerprint: t.Fingerprint()}
	n := topology.NodeID(t.NumNodes())
	// Layers follow each other in the nodes' numbers.
	for layer := range f.start {
		low, high := topology.NodeID(0), n
		for low < high {
			if mid := (low + high) / 2; int(t.Node(mid).Layer) < layer {
				low = mid + 1
			} else {
				high = mid
			}
		}
		f.start[layer] = low
	}
	most := 0
	for layer := topology.LayerEdge; layer <= topology.LayerCore; layer++ {
		first := f.start[layer]
		if first == f.start[layer+1] {
			continue
		}
		ports := t.Ports(first)
		f.ports[layer] = len(ports)
		most = max(most, len(ports))
		if layer == topology.LayerEdge {
			for f.hostPorts < len(ports) && directionOf(t, ports[f.hostPorts]) == toHost {
				f.hostPorts++
			}
		}
	}
	if most > maxPorts {
		return nil, fmt.Errorf("topoupdate: %s has switches of %d ports, and a message of %d bytes holds the state of %d at most: divide the fabric", t, most, MaxMessage, maxPorts)
	}
	f.words = (most + 63) / 64
	return f, nil
}

func (f *fabric) numSwitches() int { return f.NumNodes() - f.NumHosts() }

// isSwitch reports whether id names a switch; id may be any number.
func (f *fabric) isSwitch(id topology.NodeID) bool {
	return int(id) >= f.NumHosts() && int(id) < f.NumNodes()
}

// layer returns the layer of a node, as Node does, without making up its name.
func (f *fabric) layer(id topology.NodeID) topology.Layer {
	l := topology.LayerHost
	for l < topology.LayerCore && id >= f.start[l+1] {
		l++
	}
	return l
}

// check says what is wrong with a claim by itself.
//
// Errors: RejectOriginator, RejectPort.
func (f *fabric) check(c *claim) error {
	if !f.isSwitch(c.originator) {
		return RejectOriginator
	}
	layer := f.layer(c.originator)
	n := len(c.bitmap)
	if n == 0 {
		return nil
	}
	if n > (f.ports[layer]+7)/8 {
		return RejectPort
	}
	if extra := n*8 - f.ports[layer]; extra > 0 && c.bitmap[n-1]>>(8-extra) != 0 {
		return RejectPort
	}
	if layer == topology.LayerEdge {
		for p := range min(f.hostPorts, n*8) {
			if c.bitmap[p/8]&(1<<(p%8)) != 0 {
				return RejectPort
			}
		}
	}
	return nil
}
