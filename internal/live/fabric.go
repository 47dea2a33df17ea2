package live

import (
	"fmt"
	"slices"
)

// Bounds of a Fabric. A fat-tree with k=48 has 29,952 nodes and 82,944 links.
const (
	MaxNodes = 1 << 16
	MaxLinks = 1 << 18
)

// Fabric is what a picture is of. It changes rarely; then Version rises.
type Fabric struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`  // one of the Kind constants
	Name    string `json:"name"`  // the lab's, or the host's address
	About   string `json:"about"` // a line for people
	Nodes   []Node `json:"nodes"`
	Links   []Link `json:"links"`
	// CanFail says that the source is a Breaker.
	CanFail bool `json:"can_fail"`
	// Bundles says that nodes and links stand for several: see Bundled.
	Bundles bool `json:"bundles,omitempty"`
}

// The kinds of what is looked at.
const (
	KindLab  = "lab"  // all of a fabric in network namespaces
	KindHost = "host" // a fabric as one host sees it
	KindDemo = "demo" // a lab while weft demo runs in it
)

// Node is a host or a switch.
type Node struct {
	Name    string `json:"name"`
	Tier    int    `json:"tier"` // 0: a host; 1: its switch; and so on upwards
	Address string `json:"address,omitempty"`
	Self    bool   `json:"self,omitempty"` // the host that is asked
	Members int    `json:"members,omitempty"`
}

// Link is a cable, or what joins two nodes.
type Link struct {
	Name string `json:"name"`
	A    int    `json:"a"` // the lower end, a position in Fabric.Nodes
	B    int    `json:"b"` // the upper end
	// Rate is in bit/s, each direction, and Room the bytes of the queue at each end; 0: not known.
	Rate    float64 `json:"bit_s"`
	Room    uint64  `json:"room_bytes"`
	Members int     `json:"members,omitempty"`
}

// Check makes sure that positions are those of nodes, links lead up, names are there, and the
// bounds hold.
func (f *Fabric) Check() error {
	if len(f.Nodes) > MaxNodes || len(f.Links) > MaxLinks {
		return fmt.Errorf("fabric %s: %d nodes and %d links are more than %d and %d", f.Name, len(f.Nodes), len(f.Links), MaxNodes, MaxLinks)
	}
	for i, n := range f.Nodes {
		if n.Name == "" || n.Tier < 0 {
			return fmt.Errorf("fabric %s: node %d has no name, or tier %d", f.Name, i, n.Tier)
		}
		if short(n.Name) != n.Name {
			return fmt.Errorf("fabric %s: node %d: its name %.20q has more than %d bytes, or control characters", f.Name, i, n.Name, maxText)
		}
	}
	for _, l := range f.Links {
		if short(l.Name) != l.Name {
			return fmt.Errorf("fabric %s: the name of link %.20q has more than %d bytes, or control characters", f.Name, l.Name, maxText)
		}
		if l.A < 0 || l.B < 0 || l.A >= len(f.Nodes) || l.B >= len(f.Nodes) || f.Nodes[l.A].Tier >= f.Nodes[l.B].Tier {
			return fmt.Errorf("fabric %s: link %s does not lead from a node to one of a higher tier", f.Name, l.Name)
		}
	}
	return nil
}

// Find returns the position of the node with a name; -1: there is none.
func (f *Fabric) Find(name string) int {
	return slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Name == name })
}

// FindLink returns the position of the link with a name; -1: there is none.
func (f *Fabric) FindLink(name string) int {
	return slices.IndexFunc(f.Links, func(l Link) bool { return l.Name == name })
}

// Tiers returns the number of tiers, those of hosts included.
func (f *Fabric) Tiers() (n int) {
	for _, node := range f.Nodes {
		n = max(n, node.Tier+1)
	}
	return n
}
