package config

import (
	"fmt"
	"path/filepath"

	"weft/topology"
)

// maxTopology bounds a topology file in bytes: a line for every link of a large fabric.
const maxTopology = 8 << 20

// Topology reads a specification (topology.Parse). If spec ends in .yaml or .yml, it reads
// the file of that name (topology.ParseFile).
func Topology(spec string) (*topology.Topology, error) {
	if ext := filepath.Ext(spec); ext != ".yaml" && ext != ".yml" {
		return topology.Parse(spec)
	}
	text, err := read(spec, maxTopology)
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	t, err := topology.ParseFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return t, nil
}
