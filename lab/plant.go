package lab

import (
	"fmt"
	"iter"
	"net/netip"
	"regexp"
	"slices"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
	"weft/topology/graph"
)

// plant is what a lab is built of: nodes, links and their names. A *topology.Topology is
// one.
type plant interface {
	String() string
	NumNodes() int
	NumHosts() int
	NumLinks() int
	Valid(topology.NodeID) bool
	Node(topology.NodeID) topology.Node
	Nodes() iter.Seq[topology.Node]
	Ports(topology.NodeID) []topology.Port
	Link(topology.LinkID) topology.Link
	Links() iter.Seq[topology.Link]
	LinkName(topology.LinkID) string
	Lookup(string) (topology.Node, error)
	Rate(topology.LinkID) float64
}

// graphPlant is a graph whose links all have ports with names. Numbers of nodes and links
// are the graph's. Ports are numbered at each node, those that lead down first.
type graphPlant struct{ *graph.Graph }

func (g graphPlant) String() string {
	return fmt.Sprintf("a graph of %d hosts and %d switches", g.NumHosts(), g.NumNodes()-g.NumHosts())
}

func (g graphPlant) Valid(id topology.NodeID) bool { return id >= 0 && int(id) < g.NumNodes() }

func (g graphPlant) Node(id topology.NodeID) topology.Node {
	n := g.Graph.Node(graph.NodeID(id))
	node := topology.Node{ID: id, Layer: fabric.Layer(n.Tier), Name: n.Name}
	if node.Addr = n.IPv4(); !node.Addr.IsValid() && len(n.Addresses) > 0 {
		node.Addr = n.Addresses[0]
	}
	return node
}

func (g graphPlant) Nodes() iter.Seq[topology.Node] {
	return func(yield func(topology.Node) bool) {
		for id := range g.NumNodes() {
			if !yield(g.Node(topology.NodeID(id))) {
				return
			}
		}
	}
}

// Ports is in the order of fabric.GraphPorts.
func (g graphPlant) Ports(id topology.NodeID) []topology.Port {
	n := graph.NodeID(id)
	ports := make([]topology.Port, 0, len(g.Down(n))+len(g.Up(n)))
	for _, p := range g.Down(n) {
		ports = append(ports, topology.Port{Index: len(ports), Link: topology.LinkID(p.Link), Peer: topology.NodeID(p.Peer),
			PeerPort: len(g.Down(p.Peer)) + place(g.Up(p.Peer), p.Link)})
	}
	for _, p := range g.Up(n) {
		ports = append(ports, topology.Port{Index: len(ports), Link: topology.LinkID(p.Link), Peer: topology.NodeID(p.Peer),
			PeerPort: place(g.Down(p.Peer), p.Link), Up: true})
	}
	return ports
}

func place(ports []graph.Port, l graph.LinkID) int {
	return slices.IndexFunc(ports, func(p graph.Port) bool { return p.Link == l })
}

func (g graphPlant) Link(id topology.LinkID) topology.Link {
	low, high := g.Ends(graph.LinkID(id))
	return topology.Link{ID: id, A: topology.NodeID(low), B: topology.NodeID(high),
		PortA: len(g.Down(low)) + place(g.Up(low), graph.LinkID(id)), PortB: place(g.Down(high), graph.LinkID(id))}
}

func (g graphPlant) Links() iter.Seq[topology.Link] {
	return func(yield func(topology.Link) bool) {
		for id := range g.NumLinks() {
			if !yield(g.Link(topology.LinkID(id))) {
				return
			}
		}
	}
}

func (g graphPlant) Rate(id topology.LinkID) float64 { return g.Graph.Link(graph.LinkID(id)).Rate }

func (g graphPlant) Lookup(name string) (topology.Node, error) {
	if id, ok := g.ByName(name); ok {
		return g.Node(topology.NodeID(id)), nil
	}
	if a, err := netip.ParseAddr(name); err == nil {
		if id, ok := g.ByAddr(a); ok {
			return g.Node(topology.NodeID(id)), nil
		}
	}
	return topology.Node{}, fmt.Errorf("node %q: the graph has none; its nodes are called as %s or %s", name,
		g.Graph.Node(0).Name, g.Graph.Node(graph.NodeID(g.NumNodes()-1)).Name)
}

// LinkName is LOWER-UPPER, or LOWER:PORT-UPPER:PORT where several links join the two.
func (g graphPlant) LinkName(id topology.LinkID) string {
	low, high := g.Ends(graph.LinkID(id))
	twins := 0
	for _, p := range g.Up(low) {
		if p.Peer == high {
			twins++
		}
	}
	l := g.Graph.Link(graph.LinkID(id))
	if twins == 1 {
		return l.Ends[0] + "-" + l.Ends[1]
	}
	return fmt.Sprintf("%s:%s-%s:%s", l.Ends[0], l.Ports[0], l.Ends[1], l.Ports[1])
}

// linksNamed finds links by their ends in either order, NODE-NODE or NODE:PORT-NODE:PORT,
// or by one end, NODE:PORT. Names of nodes may have dashes in them.
func (g graphPlant) linksNamed(s string) (ids []topology.LinkID) {
	for id := range g.NumLinks() {
		l := g.Graph.Link(graph.LinkID(id))
		a, b := l.Ends[0]+":"+l.Ports[0], l.Ends[1]+":"+l.Ports[1]
		for _, name := range []string{l.Ends[0] + "-" + l.Ends[1], l.Ends[1] + "-" + l.Ends[0], a + "-" + b, b + "-" + a, a, b} {
			if s == name {
				ids = append(ids, topology.LinkID(id))
				break
			}
		}
	}
	return ids
}

// check makes sure that a graph can be built: names become those of namespaces, devices and
// directories.
func (g graphPlant) check() error {
	for id := range g.NumNodes() {
		n := g.Graph.Node(graph.NodeID(id))
		if len(n.Name) > maxNodeName || n.Name[0] == '.' || n.Name[0] == '-' {
			return fmt.Errorf("node %s: a lab's nodes have names of up to %d letters that do not begin with a dot or a dash", n.Name, maxNodeName)
		}
		names := make(map[string]bool)
		for _, p := range fabric.GraphPorts(g.Graph, graph.NodeID(id)) {
			switch {
			case len(p.Name) > kernel.MaxDeviceName || !deviceName.MatchString(p.Name) || slices.Contains([]string{"lo", "all", "default"}, p.Name):
				return fmt.Errorf("port %s of %s: in a lab it must have up to %d letters, digits, _ and -, and not be called lo, all or default", p.Name, n.Name, kernel.MaxDeviceName)
			case names[p.Name]:
				return fmt.Errorf("port %s of %s has two cables", p.Name, n.Name)
			}
			names[p.Name] = true
		}
	}
	return nil
}

const maxNodeName = 48

// deviceName is of names that settings and shells take.
var deviceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

// named returns the graph with names for ports that have none, p0 and so on, and AS
// numbers for switches that have none.
func named(g *graph.Graph) (*graph.Graph, error) {
	var s graph.Spec
	used := make(map[string]bool) // NODE:PORT
	as := make(map[uint32]bool)
	for id := range g.NumNodes() {
		s.Nodes = append(s.Nodes, g.Node(graph.NodeID(id)))
		as[s.Nodes[id].AS] = true
	}
	for i := range s.Nodes {
		for next := uint32(firstAS); s.Nodes[i].Tier > 0 && s.Nodes[i].AS == 0; next++ {
			if !as[next] {
				s.Nodes[i].AS, as[next] = next, true
			}
		}
	}
	for id := range g.NumLinks() {
		l := g.Link(graph.LinkID(id))
		for end := range l.Ends {
			used[l.Ends[end]+":"+l.Ports[end]] = true
		}
		s.Links = append(s.Links, l)
	}
	for i := range s.Links {
		l := &s.Links[i]
		for end := range l.Ends {
			for next := 0; l.Ports[end] == ""; next++ {
				if name := fmt.Sprintf(fabric.DefaultPortFormat, next); !used[l.Ends[end]+":"+name] {
					l.Ports[end], used[l.Ends[end]+":"+name] = name, true
				}
			}
		}
	}
	return graph.New(s)
}

// firstAS is the first AS number of 32 bits for private use (RFC 6996).
const firstAS = 4200000000
