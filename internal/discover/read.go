package discover

import (
	"go.yaml.in/yaml/v3"

	"weft/topology/graph"
)

// Read reads a file that may be a graph in YAML or containerlab's. It is false if it is
// neither.
func Read(text []byte) (f Found, ok bool, err error) {
	var top struct {
		Nodes    yaml.Node `yaml:"nodes"`
		Topology yaml.Node `yaml:"topology"`
	}
	if yaml.Unmarshal(text, &top) != nil {
		return f, false, nil
	}
	switch {
	case top.Topology.Kind == yaml.MappingNode:
		f, err = Containerlab(text)
	case top.Nodes.Kind != 0:
		f.Spec, err = graph.ParseSpec(text)
	default:
		return f, false, nil
	}
	return f, true, err
}
