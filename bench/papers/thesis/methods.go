package thesis

import (
	"weft/bench/sim/fluid"
	"weft/hedera"
	"weft/topology"
)

const (
	clickRate = 96 // Mbit/s, of hosts and links (thesis §3.5.1)
	clickTree = "fat-tree:k=4,host-rate=96,fabric-rate=96,core-rate=96"
	// A tree of 4 hosts per switch, oversubscribed 3.6:1, as far as rates matter.
	hierarchy = "leaf-spine:leaves=4,spines=1,hosts=4,host-rate=96,fabric-rate=106.67"
	minute    = 60 // rearrangements, one a second
)

// method is a column of Table 3.1: which part of all that hosts send arrives.
type method struct {
	name   string
	fabric string
	part   func(f *fluid.Fabric, to []topology.NodeID, seed uint64) float64
}

var methods = [...]method{
	{"tree", hierarchy, func(f *fluid.Fabric, to []topology.NodeID, _ uint64) float64 {
		return arriving(f, byPaths(f, to, func(hedera.Pair) int { return 0 }))
	}},
	{"two-level table", clickTree, func(f *fluid.Fabric, to []topology.NodeID, _ uint64) float64 {
		return arriving(f, byPaths(f, to, f.TwoLevel))
	}},
	{classifier, clickTree, classifiedBy(fluid.DrawnTies)},
	{"flow scheduler", clickTree, scheduled},
}

func byPaths(f *fluid.Fabric, to []topology.NodeID, path func(hedera.Pair) int) []fluid.Route {
	var routes []fluid.Route
	for _, p := range pairs(to) {
		routes = append(routes, f.Route(p.Src, p.Dst, path(p)))
	}
	return routes
}

const classifier = "flow classifier"

// classifierTies are a classifier's ways among equal ports, by what stands for its own.
var classifierTies = map[string]fluid.Ties{"ties": fluid.DrawnTies, "first": fluid.FirstOfAll, "unseen": fluid.Unseen}

// classifiedBy is the mean over a minute.
func classifiedBy(ties fluid.Ties) func(f *fluid.Fabric, to []topology.NodeID, seed uint64) float64 {
	return func(f *fluid.Fabric, to []topology.NodeID, seed uint64) float64 {
		c := fluid.NewClassifierBy(f, pairs(to), clickRate, seed, ties)
		sum := 0.0
		for range minute {
			sum += arriving(f, c.Routes())
			c.Rearrange()
		}
		return sum / minute
	}
}

// unmoved leaves flows where edge switches have put them.
func unmoved(f *fluid.Fabric, to []topology.NodeID, seed uint64) float64 {
	return arriving(f, fluid.NewClassifier(f, pairs(to), clickRate, seed).Routes())
}

// hashedPart has each flow on the path of its hash.
func hashedPart(f *fluid.Fabric, to []topology.NodeID, seed uint64) float64 {
	h := &fluid.Hash{Fabric: f, Key: fluid.ByFlow, Seed: seed}
	nth := uint64(0)
	return arriving(f, byPaths(f, to, func(p hedera.Pair) int {
		nth++
		return h.Path(p, nth)
	}))
}

// scheduled reserves whole links for one flow after the other; who finds no path
// stays where edge switches have put it (thesis §3.1.7).
func scheduled(f *fluid.Fabric, to []topology.NodeID, seed uint64) float64 {
	all := pairs(to)
	routes := fluid.NewClassifier(f, all, clickRate, seed).Routes()
	fit := hedera.NewFirstFit(f)
	for i, p := range all {
		if path, ok := fit.Place(p, 1); ok {
			routes[i] = f.Route(p.Src, p.Dst, path)
		}
	}
	return arriving(f, routes)
}

// arriving returns the part that arrives.
func arriving(f *fluid.Fabric, routes []fluid.Route) float64 {
	sum := 0.0
	for i, c := range f.OpenLoop(routes, clickRate) {
		sum += c.Arrives(&routes[i])
	}
	return sum / clickRate / float64(len(routes))
}
