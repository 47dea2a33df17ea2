package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"weft/internal/exitcode"
	"weft/topology"
	"weft/topology/graph"
)

// maxTopology bounds a topology file in bytes: a line for every link of a large fabric.
const maxTopology = 8 << 20

// Topology reads a specification (topology.Parse). If spec ends in .yaml or .yml, it reads
// the file of that name (topology.ParseFile).
func Topology(spec string) (*topology.Topology, error) {
	t, g, err := Fabric(spec)
	if g != nil {
		return nil, exitcode.AsUsage(fmt.Errorf("%s: it is a graph, which this command does not take; docs/operating.md says which commands do", spec))
	}
	return t, err
}

// Fabric is Topology, but also reads a file that is a graph (graph.Parse), and returns that.
func Fabric(spec string) (t *topology.Topology, g *graph.Graph, err error) {
	if ext := filepath.Ext(spec); ext != ".yaml" && ext != ".yml" {
		t, err = topology.Parse(spec)
		return t, nil, exitcode.AsUsage(err)
	}
	text, err := ReadInput(spec, maxTopology)
	if err != nil {
		return nil, nil, fmt.Errorf("topology file: %w", err)
	}
	if isGraph(text) {
		g, err = graph.Parse(text)
	} else {
		t, err = topology.ParseFile(text)
	}
	if err != nil {
		return nil, nil, InFile(spec, text, err)
	}
	return t, g, nil
}

// isGraph reports whether a YAML file has the key of a graph's nodes.
func isGraph(text []byte) bool {
	return slices.ContainsFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool { return bytes.HasPrefix(line, []byte("nodes:")) })
}
