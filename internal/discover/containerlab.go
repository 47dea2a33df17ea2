package discover

import (
	"fmt"
	"net/netip"
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
	Endpoints []yaml.Node       `yaml:"endpoints"`
	Labels    map[string]string `yaml:"labels"`
}

func (l *clabLink) UnmarshalYAML(n *yaml.Node) error {
	type plain clabLink
	l.node = *n
	return n.Decode((*plain)(l))
}

// Labels of a containerlab file say what it has no words for. Lists have commas; an empty
// one says that there is nothing to guess.
const (
	TierLabel     = "weft-tier"      // 0 of hosts, 1 of edge switches
	ASLabel       = "weft-as"        // of a switch
	AddressLabel  = "weft-addresses" // of a node, of both families
	PrefixesLabel = "weft-prefixes"  // of an edge switch's racks, or behind a host
	SIDsLabel     = "weft-sids"      // of a switch: its locator, or that and the two SIDs that decapsulate
	RateLabel     = "weft-rate"      // of a link, in Mbit/s
)

// Containerlab reads a containerlab topology file. A node's tier is that of its label
// weft-tier, or what its group says (server, leaf, spine, superspine), or a guess.
// Addresses for which there are no labels are guessed.
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
		for _, label := range nodeLabels {
			text, ok := c.Labels[label.name]
			if !ok {
				continue
			}
			if err := label.read(&n, text); err != nil {
				return f, fmt.Errorf("containerlab: line %d: node %s: label %s: %w", name.Line, name.Value, label.name, err)
			}
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

// nodeLabels are those of a node, but for its tier.
var nodeLabels = []struct {
	name string
	read func(*graph.Node, string) error
}{
	{ASLabel, func(n *graph.Node, text string) error {
		as, err := strconv.ParseUint(text, 10, 32)
		if err != nil || as == 0 {
			return fmt.Errorf("%q, must be a number of 32 bits", text)
		}
		n.AS = uint32(as)
		return nil
	}},
	{AddressLabel, func(n *graph.Node, text string) (err error) {
		n.Addresses, err = listed(text, netip.ParseAddr)
		return err
	}},
	{PrefixesLabel, func(n *graph.Node, text string) (err error) {
		n.Prefixes, err = listed(text, netip.ParsePrefix)
		return err
	}},
	{SIDsLabel, func(n *graph.Node, text string) error {
		list, err := listed(text, netip.ParsePrefix)
		if err == nil {
			n.SIDs, err = graph.SIDsOf(list)
		}
		return err
	}},
}

// listed reads what is between commas. The list is not nil.
func listed[T any](text string, read func(string) (T, error)) (list []T, err error) {
	list = []T{}
	if text == "" {
		return list, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		v, err := read(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("%q, must be an address such as 172.16.0.1, or a prefix such as 192.168.1.0/26", strings.TrimSpace(word))
		}
		list = append(list, v)
	}
	return list, nil
}

// link reads both notations of an end: "node:port", and keys node and interface.
func (l clabLink) link() (k graph.Link, err error) {
	k.Line = l.node.Line
	if len(l.Endpoints) != 2 {
		return k, fmt.Errorf("a link has %d endpoints; weft reads those between two nodes", len(l.Endpoints))
	}
	if text, ok := l.Labels[RateLabel]; ok {
		if k.Rate, err = strconv.ParseFloat(text, 64); err != nil || !(k.Rate > 0 && k.Rate <= graph.MaxRate) {
			return k, fmt.Errorf("label %s: %q, must be a rate in Mbit/s, up to %.0f", RateLabel, text, graph.MaxRate)
		}
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
