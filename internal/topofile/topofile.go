// Package topofile reads fabrics from where people name them: specifications, and
// the files that hold what is too long for one.
package topofile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"weft/topology"
)

// maxBytes bounds what is read of a file: a line for every link of a large fabric.
const maxBytes = 8 << 20

// Load reads a specification (topology.Parse), or the file of that name
// (topology.ParseFile) if it ends in .yaml or .yml.
func Load(spec string) (*topology.Topology, error) {
	if ext := filepath.Ext(spec); ext != ".yaml" && ext != ".yml" {
		return topology.Parse(spec)
	}
	text, err := read(spec)
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	t, err := topology.ParseFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return t, nil
}

func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxBytes)
	}
	return text, err
}
