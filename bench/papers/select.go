package papers

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weft/internal/config"
)

// Select returns the named experiments, each once, in the order of all. A name may be a
// pattern such as drb-*, or "all". The error for a name that matches none lists similar
// names.
func Select(all []Experiment, names []string) ([]Experiment, error) {
	wanted := make([]bool, len(all))
	for _, name := range names {
		found := false
		for i, e := range all {
			fits, err := path.Match(name, e.Name)
			if err != nil {
				return nil, fmt.Errorf("experiment %q: %w; write drb-* for all of DRB's", name, err)
			}
			if fits || name == "all" {
				wanted[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("experiment %q: unknown; %s", name, suggestion(all, name))
		}
	}
	var selected []Experiment
	for i, e := range all {
		if wanted[i] {
			selected = append(selected, e)
		}
	}
	return selected, nil
}

// suggestion lists the names that are nearest, or says where all are: those that go
// on where name ends, those with few other letters, the others of the same paper.
func suggestion(all []Experiment, name string) string {
	paper, _, _ := strings.Cut(name, "-")
	var names []string
	for _, near := range []func(string) bool{
		func(n string) bool { return strings.HasPrefix(n, name) },
		func(n string) bool { return config.Distance(name, n) == 1 },
		func(n string) bool { return config.Distance(name, n) == 2 },
		func(n string) bool { return strings.HasPrefix(n, paper+"-") },
	} {
		for _, e := range all {
			if near(e.Name) && !slices.Contains(names, e.Name) {
				names = append(names, e.Name)
			}
		}
	}
	if len(names) == 0 {
		return "weft sim list shows all"
	}
	const most = 12
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return "near it: " + strings.Join(names, ", ")
}
