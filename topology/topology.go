package topology

import (
	"iter"
	"net/netip"
)

// Layer is a node's height in the fabric.
type Layer uint8

// The layers of a three-level Clos, as DRB numbers its switches (1.x to 3.x).
const (
	LayerHost Layer = iota
	LayerEdge       // top-of-rack switches
	LayerAgg        // aggregation switches
	LayerCore       // spine switches
)

func (l Layer) String() string {
	return [...]string{"host", "edge", "aggregation", "core"}[l]
}

// NodeID numbers the nodes of a topology densely: hosts first, then edge,
// aggregation and core switches.
type NodeID int32

// LinkID numbers the links densely: host links first, then edge to
// aggregation, then aggregation to core.
type LinkID int32

// Node is a host or a switch.
type Node struct {
	ID    NodeID
	Layer Layer
	Name  string     // h0.0.2, e0.0, a0.2, c1.1
	Addr  netip.Addr // a host's kernel address; a switch's own, also its (first) bouncing address
}

// Link is a cable. A is the lower end.
type Link struct {
	ID           LinkID
	A, B         NodeID
	PortA, PortB int
}

// Port is one end of a link as its node sees it.
type Port struct {
	Index    int // position on this node: down-ports first
	Link     LinkID
	Peer     NodeID
	PeerPort int
	Up       bool // leads towards the core
}

// kind is a family of fabrics. It decides the addresses, the names, and
// whether a core switch is several virtual ones.
type kind uint8

const (
	fatTree kind = iota
	leafSpine
	vl2
)

func (k kind) String() string {
	return [...]string{"fat-tree", "leaf-spine", "vl2"}[k]
}

// shape is the common shape of all three-level Clos fabrics: pods of edge and aggregation
// switches, each pod a full bipartite graph, and a group of cores for every aggregation
// switch. A leaf-spine is one pod without cores. The pods of a VL2 are its aggregation
// groups, and its cores are virtual spines: those with the same place in their groups are
// one physical switch (DRB §3.2).
type shape struct {
	kind  kind
	pods  int
	edges int // edge switches per pod
	aggs  int // aggregation switches per pod
	hosts int // hosts per edge switch
	cores int // core switches per group; groups = aggs
}

func (s shape) numHosts() int { return s.pods * s.edges * s.hosts }
func (s shape) numEdges() int { return s.pods * s.edges }
func (s shape) numAggs() int  { return s.pods * s.aggs }

// numCores counts physical switches.
func (s shape) numCores() int { return s.aggs * s.cores / s.virtual() }

// virtual is how many bouncing switches a core switch is.
func (s shape) virtual() int {
	if s.kind == vl2 {
		return s.aggs
	}
	return 1
}

// Topology is a Clos fabric and the links of it that are down: a computed one, or one that
// is data, as one of its hosts sees it (FromGraph).
type Topology struct {
	spec string
	shape
	view  *view    // in place of shape, of a fabric that is data; nil: it is computed
	bases []int    // of paths between pods; the first alone within a pod
	rates *rates   // nil: none is given
	down  *linkSet // nil: none

	avoided *avoidance // nil: nothing
}

// String returns the specification that Parse accepts. It does not include links that are
// down.
func (t *Topology) String() string { return t.spec }

// NumNodes returns the number of hosts and switches.
func (t *Topology) NumNodes() int {
	if t.view != nil {
		return len(t.view.nodes)
	}
	return t.numHosts() + t.numEdges() + t.numAggs() + t.numCores()
}

// NumHosts returns the number of hosts; their IDs are 0 to NumHosts-1. It is 1 where the
// fabric is data, which has only the host itself for a node. See HostAt for others.
func (t *Topology) NumHosts() int {
	if t.view != nil {
		return 1
	}
	return t.numHosts()
}

// position is a node's place in its layer. For cores, pod is the group.
type position struct {
	layer Layer
	pod   int
	sw    int // edge or aggregation switch in the pod, core in the group
	host  int // host on the edge switch
}

// position returns that of a node; of a physical spine the position of its
// first virtual one.
func (t *Topology) position(id NodeID) position {
	i := int(id)
	if i < t.numHosts() {
		rack := i / t.hosts
		return position{LayerHost, rack / t.edges, rack % t.edges, i % t.hosts}
	}
	i -= t.numHosts()
	if i < t.numEdges() {
		return position{LayerEdge, i / t.edges, i % t.edges, 0}
	}
	i -= t.numEdges()
	if i < t.numAggs() {
		return position{LayerAgg, i / t.aggs, i % t.aggs, 0}
	}
	i -= t.numAggs()
	return position{LayerCore, i / t.cores, i % t.cores, 0}
}

func (t *Topology) id(p position) NodeID {
	switch p.layer {
	case LayerHost:
		return NodeID((p.pod*t.edges+p.sw)*t.hosts + p.host)
	case LayerEdge:
		return NodeID(t.numHosts() + p.pod*t.edges + p.sw)
	case LayerAgg:
		return NodeID(t.numHosts() + t.numEdges() + p.pod*t.aggs + p.sw)
	}
	if t.kind == vl2 {
		p.pod = 0
	}
	return NodeID(t.numHosts() + t.numEdges() + t.numAggs() + p.pod*t.cores + p.sw)
}

// core returns the core switch with DRB's number r (3.r).
func (t *Topology) core(r int) NodeID {
	return t.id(position{layer: LayerCore, pod: r / t.cores, sw: r % t.cores})
}

// Valid reports whether id names a node of t.
func (t *Topology) Valid(id NodeID) bool { return id >= 0 && int(id) < t.NumNodes() }

// Node returns the node with the given number, which must be Valid.
func (t *Topology) Node(id NodeID) Node {
	if t.view != nil {
		return t.view.nodes[id]
	}
	p := t.position(id)
	return Node{ID: id, Layer: p.layer, Name: t.name(p), Addr: t.addr(p)}
}

// Nodes yields every node in the order of their numbers.
func (t *Topology) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range t.NumNodes() {
			if !yield(t.Node(NodeID(i))) {
				return
			}
		}
	}
}

// Hosts yields the hosts in the order of their numbers.
func (t *Topology) Hosts() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range t.NumHosts() {
			if !yield(t.Node(NodeID(i))) {
				return
			}
		}
	}
}
