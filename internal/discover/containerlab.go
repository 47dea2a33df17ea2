package discover

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"weft/topology/graph"
)

// clab is what a containerlab file says of nodes and links. It says much besides.
type clab struct {
	Topology struct {
		Nodes yaml.Node  `yaml:"nodes"`
		Links []clabLink `yaml:"links"`
	} `yaml:"topology"`
}

type clabNode struct {
	Kind   string            `yaml:"kind"`
	Group  string            `yaml:"group"`
	Labels map[string]string `yaml:"labels"`
}

type clabLink struct {
	node      yaml.Node
	Endpoints []yaml.Node `yaml:"endpoints"`
}

func (l *clabLink) UnmarshalYAML(n *yaml.Node) error {
	type plain clabLink
	l.node = *n
	return n.Decode((*plain)(l))
}

// TierLabel is the label of a containerlab node that says its tier: 0 of hosts, 1 of edge
// switches.
const TierLabel = "weft-tier"

// Containerlab reads a containerlab topology file. A node's tier is that of its label
// weft-tier, or what its group says (server, leaf, spine, superspine), or a guess.
// Addresses are not part of such files, and are guessed.
func Containerlab(text []byte) (f Found, err error) {
	var file clab
	if err := yaml.Unmarshal(text, &file); err != nil {
		return f, fmt.Errorf("containerlab: %w", err)
	}
	nodes := file.Topology.Nodes
	if nodes.Kind != yaml.MappingNode {
		return f, fmt.Errorf("containerlab: topology.nodes is missing")
	}
	for i := 0; i+1 < len(nodes.Content); i += 2 {
		name := nodes.Content[i]
		var c clabNode
		if err := nodes.Content[i+1].Decode(&c); err != nil {
			return f, fmt.Errorf("containerlab: node %s: %w", name.Value, err)
		}
		n := graph.Node{Name: name.Value, Line: name.Line, Tier: unknown}
		if label, ok := c.Labels[TierLabel]; ok {
			if n.Tier, err = strconv.Atoi(label); err != nil || n.Tier < 0 {
				return f, fmt.Errorf("containerlab: line %d: node %s: label %s: %q, must be a number from 0 to %d",
					name.Line, name.Value, TierLabel, label, graph.MaxTier)
			}
		} else if c.Group != "" {
			n.Tier = hint(c.Group)
		}
		f.Spec.Nodes = append(f.Spec.Nodes, n)
	}
	for _, l := range file.Topology.Links {
		link, err := l.link()
		if err != nil {
			return f, fmt.Errorf("containerlab: line %d: %w", l.node.Line, err)
		}
		f.Spec.Links = append(f.Spec.Links, link)
	}
	f.guessTiers()
	f.guessAddresses()
	return f, nil
}

// link reads both notations of an end: "node:port", and keys node and interface.
func (l clabLink) link() (k graph.Link, err error) {
	k.Line = l.node.Line
	if len(l.Endpoints) != 2 {
		return k, fmt.Errorf("a link has %d endpoints; weft reads those between two nodes", len(l.Endpoints))
	}
	for i, e := range l.Endpoints {
		if e.Kind == yaml.ScalarNode {
			k.Ends[i], k.Ports[i], _ = strings.Cut(e.Value, ":")
			continue
		}
		var long struct{ Node, Interface string }
		if err := e.Decode(&long); err != nil {
			return k, err
		}
		k.Ends[i], k.Ports[i] = long.Node, long.Interface
	}
	return k, nil
}
