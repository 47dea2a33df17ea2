package lab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Names returns the names of the labs that are up, in order of the alphabet.
func Names() (names []string) {
	files, _ := filepath.Glob(statePath("*")) // the pattern is right
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if state, err := readState(name); err == nil && state != nil && state.Ready {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Parts returns the names of the nodes and links of a lab that is up. It needs no privileges.
func Parts(name string) (nodes, links []string, err error) {
	if err := checkLabName(name); err != nil {
		return nil, nil, err
	}
	state, err := readState(name)
	if err != nil {
		return nil, nil, err
	}
	if state == nil || !state.Ready {
		return nil, nil, fmt.Errorf("lab %s is not up", name)
	}
	cfg, err := state.config(name)
	if err != nil {
		return nil, nil, err
	}
	p := cfg.plant()
	for n := range p.Nodes() {
		if cfg.builds(n.ID) {
			nodes = append(nodes, n.Name)
		}
	}
	for l := range p.Links() {
		if cfg.builds(l.A) && cfg.builds(l.B) {
			links = append(links, p.LinkName(l.ID))
		}
	}
	return nodes, links, nil
}
